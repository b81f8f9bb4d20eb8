//! The section of an experiment that this report does not know.

use super::super::case::{Case, varying};
use super::super::section::Body;
use super::details::details;

pub(crate) fn body(cases: &[Case<'_>]) -> Body {
    let mut body = Body {
        answer: "There is no answer for an experiment that this report does not know.".to_owned(),
        ..Body::default()
    };
    details(&mut body, cases, &varying(cases));
    for table in &mut body.tables {
        table.is_detail = false;
    }
    body
}
