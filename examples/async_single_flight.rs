//! Async single flight: a hundred tasks ask for one key, and one of them computes. Any executor runs them; this is tokio.
//!
//! ```sh
//! cargo run --example async_single_flight
//! ```

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use haypile::Cache;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let cache = Cache::open("memory:size=1MiB")?;
    let computed = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let (cache, computed) = (cache.clone(), Arc::clone(&computed));
            tokio::spawn(async move {
                let compute = async || {
                    computed.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    b"the answer".to_vec()
                };
                cache.get_or_compute_async("question", Duration::from_mins(1), compute).await
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await??, b"the answer");
    }
    println!("100 tasks, computed {} time", computed.load(Ordering::Relaxed));
    Ok(())
}
