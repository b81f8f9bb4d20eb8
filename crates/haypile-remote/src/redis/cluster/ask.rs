//! Requests to the nodes that have the keys, and to the nodes that these redirect to.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use redis::Value;

use super::Cluster;
use super::redirect::{Redirect, redirect};
use crate::address::Address;
use crate::deadline::{Deadline, Lost};
use crate::redis::connection::{Reply, ask_all};
use crate::redis::nodes::{Batch, Node, Purpose, by_key};
use crate::server::Unreachable;

/// Redirections that one operation follows at most.
const MAX_REDIRECTIONS: usize = 4;

/// Keys of a batch that go to one node.
struct AskPart {
    address: Address,
    node: Arc<Node>,
    is_for_now: bool,
    /// Their positions in the batch.
    places: Vec<usize>,
}

/// Outcome of a request about a key.
enum AskOutcome<R> {
    Answer(R),
    Elsewhere(Redirect),
    /// The node's answer may be out of date.
    Unknown,
}

impl Cluster {
    /// Sends a batch of commands to the cluster nodes that have the keys, one node after the other; see
    /// [`Nodes::ask`](crate::redis::nodes::Nodes::ask).
    pub(in crate::redis) fn ask<R>(
        &self,
        purpose: Purpose,
        batch: &Batch,
        read: impl Fn(Vec<Reply<Value>>) -> Result<R, Lost>,
    ) -> Vec<Option<R>> {
        self.renew_if_due();
        let deadline = Deadline::after(self.timeout);
        let mut answers: Vec<Option<R>> = batch.keys.iter().map(|_| None).collect();
        let mut parts = self.parts(batch);
        for _ in 0..=MAX_REDIRECTIONS {
            let mut elsewhere = Vec::new();
            for part in parts {
                let Ok(outcomes) = part.ask(purpose, batch, &read) else {
                    self.is_stale.store(true, Ordering::Relaxed);
                    continue;
                };
                for (place, outcome) in part.places.iter().zip(outcomes) {
                    match outcome {
                        AskOutcome::Answer(answer) => answers[*place] = Some(answer),
                        AskOutcome::Elsewhere(redirect) => elsewhere.push((*place, redirect)),
                        AskOutcome::Unknown => {}
                    }
                }
            }
            if elsewhere.is_empty() || deadline.left().is_err() {
                break;
            }
            if elsewhere.iter().any(|(_, redirect)| !redirect.is_for_now) {
                self.is_stale.store(true, Ordering::Relaxed);
                // If no node answers, the named node is asked all the same.
                let _ = self.renew(deadline);
            }
            parts = self.parts_elsewhere(elsewhere);
        }
        if matches!(purpose, Purpose::Change(_)) {
            let open = answers.iter().zip(&batch.keys).filter(|(answer, _)| answer.is_none());
            self.enqueue(open.map(|(_, key)| key.as_slice()));
            // A node that was redirected to may not be the one that has the slot.
            self.assign_fences();
        }
        answers
    }

    /// Groups the keys by the nodes that have their slots.
    fn parts(&self, batch: &Batch) -> Vec<AskPart> {
        let topology = self.topology();
        let mut parts: Vec<AskPart> = Vec::new();
        for (place, key) in batch.keys.iter().enumerate() {
            let Some(member) = topology.member_of(key) else {
                self.is_stale.store(true, Ordering::Relaxed);
                continue;
            };
            match parts.iter_mut().find(|part| Arc::ptr_eq(&part.node, &member.node)) {
                Some(part) => part.places.push(place),
                None => parts.push(AskPart {
                    address: member.address.clone(),
                    node: Arc::clone(&member.node),
                    is_for_now: false,
                    places: vec![place],
                }),
            }
        }
        parts
    }

    fn parts_elsewhere(&self, elsewhere: Vec<(usize, Redirect)>) -> Vec<AskPart> {
        let mut parts: Vec<AskPart> = Vec::new();
        for (place, Redirect { to, is_for_now }) in elsewhere {
            let same = |part: &&mut AskPart| part.address == to && part.is_for_now == is_for_now;
            if let Some(part) = parts.iter_mut().find(same) {
                part.places.push(place);
            } else {
                let node = self.node_at(&to);
                parts.push(AskPart { address: to, node, is_for_now, places: vec![place] });
            }
        }
        parts
    }
}

impl AskPart {
    /// Asks the node about its keys, in one round trip.
    fn ask<R>(
        &self,
        purpose: Purpose,
        batch: &Batch,
        read: impl Fn(Vec<Reply<Value>>) -> Result<R, Lost>,
    ) -> Result<Vec<AskOutcome<R>>, Unreachable> {
        let own;
        // The number of positions is not enough: redirections of several nodes can change the
        // order.
        let is_batch = self.places.iter().copied().eq(0..batch.keys.len());
        let pipeline = if is_batch && !self.is_for_now {
            &batch.pipeline
        } else {
            own = batch.pipeline_of(&self.places, self.is_for_now);
            &own
        };
        let keys = || self.places.iter().map(|place| batch.keys[*place].as_slice());
        let outcome = |(replies, is_pending): (Vec<Reply<Value>>, bool)| {
            if is_pending {
                return Ok(AskOutcome::Unknown);
            }
            Ok(match redirect(&replies, &self.address)? {
                Some(redirect) => AskOutcome::Elsewhere(redirect),
                None => AskOutcome::Answer(read(replies)?),
            })
        };
        let changed: Vec<_> = match purpose {
            Purpose::Read => Vec::new(),
            Purpose::Change(_) => keys().collect(),
        };
        self.node.ask(purpose.repeat(), &changed, |connection, deadline| {
            // Before the request: keys that are drained from now on could be so only after the
            // answer.
            let undeleted = self.node.still_pending(keys()).into_iter().chain(iter::repeat(false));
            let mut replies = ask_all(pipeline, connection, deadline)?;
            if self.is_for_now {
                // The replies to `ASKING` itself carry no information.
                replies = replies.into_iter().skip(1).step_by(2).collect();
            }
            by_key(replies, self.places.len()).zip(undeleted).map(outcome).collect()
        })
    }
}
