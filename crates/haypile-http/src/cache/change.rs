//! Requests that may change the responses to others, and the stored responses that they invalidate.

use std::time::Duration;

use http::{Method, Request, Response, Uri, response};

use super::fetch::{Fetch, Received};
use super::{Body, Failed, FollowedRedirect, Forwarded, HttpCache, Origin, Status, tell};
use crate::semantics::{
    RequestDirectives, Target, clears_origin, invalidated_by, invalidated_groups,
};
use crate::storage::{Group, LONGEST_PREFIX, MOST_GROUPS, origin_of};

/// The name of the group of all that an origin has in groups. No field can have it.
const IN_ANY_GROUP: &str = "\0";

impl HttpCache {
    /// Sends a request that may change other responses (such as a POST), and invalidates the stored
    /// responses that it may have changed.
    pub(super) async fn send_and_invalidate(
        &self,
        origin: impl Origin,
        request: Request<Body>,
        target: &Target,
    ) -> Result<Response<Body>, Failed> {
        let why = Forwarded::Method;
        let asked = request.method().clone();
        let uri = request.uri().clone();
        let (head, body) = request.into_parts();
        let (storage, name) = (&self.inner.storage, self.name(target));
        // Responses to other methods are not stored. What is invalidated from here on, they are not
        // stored after.
        let post = (asked == Method::POST).then(|| head.clone());
        let mut begun = match &post {
            Some(parts) => self.begin(parts, &name, storage.read_own(&name).await.as_ref()).await,
            None => None,
        };
        let request = Request::from_parts(head, body);
        let requested = self.now();
        let response = match origin.clone().send(request).await {
            Ok(response) => response,
            Err(error) => {
                storage.settle(&name).await;
                return Err(Failed::of(why)(error));
            }
        };
        let received = self.now();
        let (response, body) = response.into_parts();
        // What another target answers says nothing about others of this origin.
        let is_elsewhere = response.extensions.get::<FollowedRedirect>().is_some();
        if !is_elsewhere {
            self.heed_clearing(&uri, &response).await;
            self.invalidate_groups(invalidated_groups(&asked, &response), target).await;
        }
        for other in invalidated_by(&asked, target, &response) {
            if other == *target {
                begun = match begun {
                    Some(begun) => storage.renew(&name, begun).await,
                    None => None,
                };
                if begun.is_none() {
                    storage.invalidate(&name).await;
                }
                for other in self.names(target).await.iter().filter(|other| **other != name) {
                    storage.invalidate(other).await;
                }
            } else if !is_elsewhere {
                for name in self.names(&other).await {
                    storage.invalidate(&name).await;
                }
            }
        }
        if let Some(parts) = post {
            let cache = self.clone();
            let directives = RequestDirectives::read(&parts.headers);
            let fetch = Fetch {
                cache,
                parts,
                directives,
                name,
                read: None,
                stale: None,
                why,
                leader: None,
                patience: Duration::ZERO,
                asks_for_all: false,
            };
            let received = Received { response, body, requested, received };
            return fetch.keep(origin, received, begun).await.map_err(Failed::of(why));
        }
        let mut response = Response::from_parts(response, body);
        tell(&mut response, Status::forwarded(why));
        Ok(response)
    }

    /// Invalidates all stored responses of an origin if its response to a request for `uri` demands
    /// that (`Clear-Site-Data`).
    pub(super) async fn heed_clearing(&self, uri: &Uri, response: &response::Parts) {
        if clears_origin(&self.inner.rules, uri, response)
            && let Ok(target) = Target::of(uri)
        {
            let prefix = self.partitioned(&format!("{}/", target.origin()));
            // The record of purges has no room for a longer name.
            if prefix.len() <= LONGEST_PREFIX {
                self.inner.storage.purge(prefix, false).await;
            }
        }
    }

    /// Forgets the responses of an origin that are in these groups.
    async fn invalidate_groups(&self, groups: Vec<String>, target: &Target) {
        if groups.is_empty() {
            return;
        }
        let origin = self.partitioned(target.origin());
        let named = if groups.len() > MOST_GROUPS { vec![IN_ANY_GROUP.to_owned()] } else { groups };
        let groups = named.iter().map(|name| Group::of(&origin, name)).collect();
        self.inner.storage.purge_groups(groups, false).await;
    }

    /// Returns the purge groups (responses that are purged together) of a response that states
    /// these names: two for each name (of all origins, and of its own), and that of all its
    /// origin's responses with groups.
    pub(super) fn groups(&self, name: &[u8], named: &[String]) -> Vec<Group> {
        let (all, origin) = (self.partitioned(""), origin_of(name));
        let mut groups: Vec<Group> = named
            .iter()
            .flat_map(|name| [Group::of(&all, name), Group::of(origin, name)])
            .collect();
        if !groups.is_empty() {
            groups.push(Group::of(origin, IN_ANY_GROUP));
        }
        groups
    }
}
