//! Computing on a miss in tasks.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use haypile::{Cache, ComputeError};

const LIFE: Duration = Duration::from_mins(1);

fn cache() -> Cache {
    Cache::open("memory:size=1MiB,compute_wait=60s").unwrap()
}

/// Counts how often a task is woken.
#[derive(Default)]
struct Counted(AtomicU32);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>, waker: &Arc<Counted>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(waker))))
}

/// A value that comes when its sender has sent it.
async fn received(receiver: &mpsc::Receiver<&'static str>) -> Vec<u8> {
    poll_fn(|_| receiver.try_recv().map_or(Poll::Pending, |value| Poll::Ready(value.into()))).await
}

#[test]
fn a_task_that_waits_is_woken_by_the_one_that_computes() {
    let (cache, (sender, receiver)) = (cache(), mpsc::channel());
    let wakers = [Arc::new(Counted::default()), Arc::new(Counted::default())];
    let mut first = pin!(cache.get_or_compute_async("key", LIFE, || received(&receiver)));
    let mut second =
        pin!(cache.get_or_compute_async("key", LIFE, async || unreachable!("the first computes")));
    assert!(poll(first.as_mut(), &wakers[0]).is_pending());
    assert!(poll(second.as_mut(), &wakers[1]).is_pending());
    assert_eq!(wakers[1].0.load(Ordering::SeqCst), 0);
    sender.send("value").unwrap();
    let Poll::Ready(value) = poll(first.as_mut(), &wakers[0]) else { panic!("it was sent") };
    assert_eq!(value.unwrap(), b"value");
    assert!(wakers[1].0.load(Ordering::SeqCst) > 0);
    let Poll::Ready(value) = poll(second.as_mut(), &wakers[1]) else { panic!("it was computed") };
    assert_eq!(value.unwrap(), b"value");
}

#[test]
fn a_task_that_is_dropped_hands_the_computation_on() {
    let (cache, (_sender, receiver)) = (cache(), mpsc::channel());
    let wakers = [Arc::new(Counted::default()), Arc::new(Counted::default())];
    let mut first = Box::pin(cache.get_or_compute_async("key", LIFE, || received(&receiver)));
    let mut second = pin!(cache.get_or_compute_async("key", LIFE, async || b"second".to_vec()));
    assert!(poll(first.as_mut(), &wakers[0]).is_pending());
    assert!(poll(second.as_mut(), &wakers[1]).is_pending());
    drop(first);
    assert!(wakers[1].0.load(Ordering::SeqCst) > 0);
    let Poll::Ready(value) = poll(second.as_mut(), &wakers[1]) else { panic!("it computes") };
    assert_eq!(value.unwrap(), b"second");
}

#[test]
fn a_task_and_a_thread_wait_for_each_other() {
    let (cache, (sender, receiver)) = (cache(), mpsc::channel());
    let waker = Arc::new(Counted::default());
    let mut task = pin!(cache.get_or_compute_async("key", LIFE, || received(&receiver)));
    assert!(poll(task.as_mut(), &waker).is_pending());
    std::thread::scope(|scope| {
        let thread =
            scope.spawn(|| cache.get_or_compute("key", LIFE, || b"thread".to_vec()).unwrap());
        sender.send("task").unwrap();
        let Poll::Ready(value) = poll(task.as_mut(), &waker) else { panic!("it was sent") };
        assert_eq!(value.unwrap(), b"task");
        assert_eq!(thread.join().unwrap(), b"task");
    });
}

#[test]
fn a_failure_is_the_caller_s_and_nothing_is_stored() {
    let cache = cache();
    let failed: Result<_, ComputeError<&str>> =
        pollster::block_on(cache.get_or_try_compute_async("key", LIFE, async || Err("no")));
    assert!(matches!(failed, Err(ComputeError::Compute("no"))));
    assert!(!cache.contains("key").unwrap());
    let value =
        pollster::block_on(cache.get_or_compute_async("key", LIFE, async || b"value".to_vec()));
    assert_eq!(value.unwrap(), b"value");
    let again = cache.get_or_compute_async("key", LIFE, async || unreachable!("it is there"));
    assert_eq!(pollster::block_on(again).unwrap(), b"value");
}

/// A deletion during the computation wins, as it does among threads.
#[test]
fn a_deletion_during_the_computation_wins() {
    let (cache, (sender, receiver)) = (cache(), mpsc::channel());
    let waker = Arc::new(Counted::default());
    let mut task = pin!(cache.get_or_compute_async("key", LIFE, || received(&receiver)));
    assert!(poll(task.as_mut(), &waker).is_pending());
    assert!(!cache.delete("key").unwrap());
    sender.send("stale").unwrap();
    let Poll::Ready(value) = poll(task.as_mut(), &waker) else { panic!("it was sent") };
    assert_eq!(value.unwrap(), b"stale");
    assert!(!cache.contains("key").unwrap());
}

/// The wait for one that never ends is bounded, and its end wakes the task.
#[test]
fn a_wait_ends_at_its_bound() {
    let cache = Cache::open("memory:size=1MiB,compute_wait=20ms").unwrap();
    let (_sender, receiver) = mpsc::channel();
    let waker = Arc::new(Counted::default());
    let mut first = pin!(cache.get_or_compute_async("key", LIFE, || received(&receiver)));
    assert!(poll(first.as_mut(), &waker).is_pending());
    let second = cache.get_or_compute_async("key", LIFE, async || b"second".to_vec());
    assert_eq!(pollster::block_on(second).unwrap(), b"second");
}

/// Executors move tasks between threads.
#[test]
fn the_future_is_send() {
    fn is_send<T: Send>(_: &T) {}
    let cache = cache();
    is_send(&cache.get_or_compute_async("key", LIFE, async || Vec::new()));
}
