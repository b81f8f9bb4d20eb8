//! Rate, delay, loss and ends, counted in bytes and in the time of a paused clock.

use std::time::Duration;

use haypile_origin::link::RelayEnd;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, sleep_until};

use crate::streams::{Connection, Failing, STREAM_BYTES, assert_takes, connect, link, transfer};

const NONE: Duration = Duration::ZERO;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The time of one packet.
fn packet(bits_per_second: u64) -> Duration {
    Duration::from_nanos(1_460 * 8 * 1_000_000_000 / bits_per_second)
}

#[tokio::test(start_paused = true)]
async fn a_transfer_takes_its_bits_and_the_round_trip() {
    for (rate, rate_text, bytes, took) in [
        (1_000_000, "1Mbit/s", 1_000_000, ms(8_000)),
        (333_000, "333kbit/s", 333_000, ms(8_000)),
        (40_000_000, "40Mbit/s", 5_000_000, ms(1_000)),
        (1_000_000_000, "1Gbit/s", 25_000_000, ms(200)),
        (8, "8bit/s", 3, ms(3_000)),
    ] {
        let start = Instant::now();
        let link = link(&format!("down={rate_text},rtt=1ms"), 1);
        let Connection { mut client, mut origin, .. } = connect(&link, 1);
        let end = transfer(&mut origin, &mut client, bytes).await;
        // A round trip to connect, half of one until the origin knows that, and half of one back.
        assert_takes(end - start, ms(2) + took, packet(rate).min(ms(12)));
        assert_eq!((link.bytes_down(), link.bytes_up()), (bytes as u64, 0));
        // The stream's end does not matter to those who read the counters.
        drop((client, origin));
    }
}

#[tokio::test(start_paused = true)]
async fn the_round_trip_is_in_a_transfer_once() {
    let start = Instant::now();
    let link = link("umts,jitter=0", 1);
    let Connection { mut client, mut origin, .. } = connect(&link, 1);
    let request = transfer(&mut client, &mut origin, 100).await;
    assert_takes(request - start, ms(150 + 75), packet(1_000_000));
    let response = transfer(&mut origin, &mut client, 1_000_000).await;
    assert_takes(response - request, ms(8_000 + 75), packet(1_000_000));
}

#[tokio::test(start_paused = true)]
async fn connections_share_a_rate_evenly() {
    const CONNECTIONS: u32 = 6;
    let link = link("down=1Mbit/s", 1);
    let start = Instant::now();
    let mut transfers = Vec::new();
    for _ in 0..CONNECTIONS {
        let Connection { mut client, mut origin, .. } = connect(&link, 1);
        let task = async move { transfer(&mut origin, &mut client, 125_000).await };
        transfers.push(tokio::spawn(task));
    }
    let mut last = NONE;
    for transfer in transfers {
        let end = transfer.await.expect("it ends") - start;
        // All end in the last round of turns.
        assert_takes(end, ms(6_000).saturating_sub(packet(1_000_000) * CONNECTIONS), ms(75));
        last = last.max(end);
    }
    assert_takes(last, ms(6_000), NONE);
    assert_eq!((link.connections(), link.bytes_down()), (6, 6 * 125_000));
}

#[tokio::test(start_paused = true)]
async fn a_short_transfer_does_not_wait_for_a_long_one() {
    let link = link("down=1Mbit/s", 1);
    let start = Instant::now();
    let Connection { mut client, mut origin, .. } = connect(&link, 1);
    let long = tokio::spawn(async move { transfer(&mut origin, &mut client, 1_000_000).await });
    sleep(ms(2_000)).await;
    let Connection { mut client, mut origin, .. } = connect(&link, 1);
    let short = transfer(&mut origin, &mut client, 50_000).await - start;
    assert_takes(short, ms(2_000 + 2 * 400), packet(1_000_000) * 3);
    assert_takes(long.await.expect("it ends") - start, ms(8_400), packet(1_000_000));
}

#[tokio::test(start_paused = true)]
async fn directions_are_independent() {
    let link = link("down=1Mbit/s,up=500kbit/s", 1);
    let start = Instant::now();
    let Connection { client, origin, .. } = connect(&link, 1);
    let (mut from_origin, mut to_client) = tokio::io::split(client);
    let (mut from_client, mut to_origin) = tokio::io::split(origin);
    let (down, up) = tokio::join!(
        transfer(&mut to_origin, &mut from_origin, 250_000),
        transfer(&mut to_client, &mut from_client, 125_000),
    );
    assert_takes(down - start, ms(2_000), packet(1_000_000));
    assert_takes(up - start, ms(2_000), packet(500_000));
    assert_eq!((link.bytes_down(), link.bytes_up()), (250_000, 125_000));
}

#[tokio::test(start_paused = true)]
async fn connecting_costs_round_trips_once() {
    for (round_trips, first) in [(1, 150), (2, 250), (3, 350)] {
        let link = link("rtt=100ms", 1);
        let start = Instant::now();
        let Connection { mut client, mut origin, .. } = connect(&link, round_trips);
        let request = transfer(&mut client, &mut origin, 10).await;
        assert_takes(request - start, ms(first), NONE);
        let response = transfer(&mut origin, &mut client, 10).await;
        assert_takes(response - request, ms(50), NONE);
        let request = transfer(&mut client, &mut origin, 10).await;
        assert_takes(request - response, ms(50), NONE);
    }
    let link = link("rtt=100ms", 1);
    let start = Instant::now();
    let Connection { mut client, mut origin, .. } = connect(&link, 1);
    let greeting = transfer(&mut origin, &mut client, 10).await;
    assert_takes(greeting - start, ms(200), NONE);
}

/// Returns how long each of some messages takes, with a pause between them.
async fn delays(profile: &str, seed: u64, pause: Duration) -> Vec<Duration> {
    let link = link(profile, seed);
    let Connection { mut client, mut origin, .. } = connect(&link, 0);
    let mut delays = Vec::new();
    for _ in 0..200 {
        let start = Instant::now();
        delays.push(transfer(&mut client, &mut origin, 10).await - start);
        sleep_until(start + pause).await;
    }
    delays
}

#[tokio::test(start_paused = true)]
async fn jitter_keeps_its_bounds_and_follows_from_the_seed() {
    let profile = "rtt=100ms,jitter=40ms";
    let first = delays(profile, 1, ms(200)).await;
    for delay in &first {
        assert!((ms(30)..=ms(72)).contains(delay), "{delay:?}");
    }
    assert!(first.iter().any(|delay| *delay < ms(35)));
    assert!(first.iter().any(|delay| *delay > ms(65)));
    assert_eq!(delays(profile, 1, ms(200)).await, first);
    assert_ne!(delays(profile, 2, ms(200)).await, first);
}

#[tokio::test(start_paused = true)]
async fn a_lost_packet_comes_a_retransmission_later() {
    let profile = "rtt=100ms,loss=30%";
    let first = delays(profile, 1, ms(20_000)).await;
    let in_time = first.iter().filter(|delay| **delay <= ms(52)).count();
    // 140 are expected, with a standard deviation of 6.5.
    assert!((110..170).contains(&in_time), "{in_time}");
    for delay in &first {
        let is_one = (0..=6).any(|losses| {
            let expected = ms(50) + ms(200) * ((1 << losses) - 1);
            (expected..=expected + ms(2)).contains(delay)
        });
        assert!(is_one, "{delay:?}");
    }
    assert!(first.contains(&ms(250)) || first.contains(&ms(251)));
    assert_eq!(delays(profile, 1, ms(20_000)).await, first);
    // The retransmission takes a round trip where that is longer.
    let slow = delays("rtt=2s,loss=30%", 1, ms(200_000)).await;
    assert!(slow.iter().any(|delay| (ms(3_000)..=ms(3_002)).contains(delay)));
}

#[tokio::test(start_paused = true)]
async fn a_loss_holds_up_its_own_connection_alone() {
    let link = link("rtt=100ms,loss=30%", 1);
    let mut longest = Vec::new();
    for _ in 0..2 {
        let start = Instant::now();
        let Connection { mut client, mut origin, .. } = connect(&link, 0);
        let mut came = Vec::new();
        let send = async {
            for place in 0..40 {
                client.write_all(&[place]).await.expect("it takes it");
                sleep(ms(10)).await;
            }
        };
        let receive = async {
            for place in 0..40 {
                assert_eq!(origin.read_u8().await.expect("it comes"), place);
                came.push(Instant::now() - start);
            }
        };
        tokio::join!(send, receive);
        // Some come together with one that was lost before them.
        assert!(came.windows(2).any(|two| two[0] == two[1] && two[0] > ms(250)), "{came:?}");
        longest.push(came);
    }
    assert_ne!(longest[0], longest[1]);
}

#[tokio::test(start_paused = true)]
async fn an_unshaped_link_passes_at_once() {
    let start = Instant::now();
    let link = link("unshaped", 1);
    let Connection { mut client, mut origin, .. } = connect(&link, 2);
    transfer(&mut client, &mut origin, 100).await;
    transfer(&mut origin, &mut client, 10_000_000).await;
    assert_eq!(start.elapsed(), NONE);
}

#[tokio::test(start_paused = true)]
async fn a_sender_waits_for_a_receiver_that_does_not_read() {
    for (profile, least, most) in [
        ("down=1Mbit/s,rtt=100ms", 32 << 10, 64 << 10),
        // The link carries 200,000 bytes in a round trip.
        ("down=16Mbit/s,rtt=100ms", 150_000, 240_000),
        ("down=1Gbit/s,rtt=1s", 700 << 10, 1 << 20),
        ("unshaped", 700 << 10, 1 << 20),
        ("rtt=1s", 700 << 10, 1 << 20),
    ] {
        let link = link(profile, 1);
        let Connection { mut client, mut origin, .. } = connect(&link, 1);
        let mut taken = 0;
        let send = async {
            loop {
                taken += origin.write(&[7; 1_000]).await.expect("it takes some");
            }
        };
        assert!(tokio::time::timeout(ms(600_000), send).await.is_err(), "{profile}");
        let in_link = taken - 2 * STREAM_BYTES;
        assert!((least..=most).contains(&in_link), "{profile}: {in_link}");
        drop(origin);
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.expect("it ends");
        assert!(received == vec![7; taken], "{profile}: {}", received.len());
    }
}

#[tokio::test(start_paused = true)]
async fn many_small_pieces_are_bounded_as_well() {
    let link = link("rtt=1s", 1);
    let Connection { client, mut origin, .. } = connect(&link, 0);
    let mut taken = 0;
    let send = async {
        loop {
            origin.write_all(b"x").await.expect("it takes it");
            taken += 1;
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
    };
    // The client never reads.
    assert!(tokio::time::timeout(ms(600_000), send).await.is_err());
    // A piece costs memory of its own.
    assert!(taken < (1 << 20) / 128 + 3 * STREAM_BYTES, "{taken}");
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn each_direction_ends_on_its_own() {
    let link = link("rtt=100ms", 1);
    let start = Instant::now();
    let Connection { mut client, mut origin, relay } = connect(&link, 1);
    client.write_all(b"request").await.expect("it takes it");
    client.shutdown().await.expect("it is open");
    let mut request = Vec::new();
    origin.read_to_end(&mut request).await.expect("it ends");
    assert_takes(start.elapsed(), ms(150), NONE);
    assert_eq!(request, b"request");
    assert_eq!(link.open_connections(), 1);
    origin.write_all(b"response").await.expect("it takes it");
    drop(origin);
    let mut response = Vec::new();
    client.read_to_end(&mut response).await.expect("it ends");
    assert_takes(start.elapsed(), ms(200), NONE);
    assert_eq!(response, b"response");
    assert_eq!(relay.await.expect("it ends"), RelayEnd::Closed);
    assert_eq!((link.connections(), link.open_connections()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reset_comes_after_what_is_in_flight() {
    let start = Instant::now();
    let link = link("rtt=100ms,down=8kbit/s", 1);
    let (mut client, mut client_side) = duplex(STREAM_BYTES);
    let relay = async {
        let mut origin = Failing(b"hello");
        (link.relay(&mut client_side, &mut origin, 1).await, start.elapsed())
    };
    let read = async {
        let mut greeting = [0; 5];
        client.read_exact(&mut greeting).await.expect("it comes");
        (greeting, start.elapsed())
    };
    let ((end, reset), (greeting, came)) = tokio::join!(relay, read);
    assert_eq!((end, &greeting), (RelayEnd::Reset, b"hello"));
    assert_takes(came, ms(205), NONE);
    assert_takes(reset, ms(205), NONE);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_resets_the_origin() {
    let link = link("rtt=100ms", 1);
    let Connection { client, mut origin, relay } = connect(&link, 1);
    drop(client);
    let start = Instant::now();
    // It is told of the end, and sends on.
    assert_eq!(origin.read(&mut [0]).await.expect("it ends"), 0);
    assert_takes(start.elapsed(), ms(150), NONE);
    origin.write_all(b"response").await.expect("it takes it");
    assert_eq!(relay.await.expect("it ends"), RelayEnd::Reset);
    assert_takes(start.elapsed(), ms(250), NONE);
}

proptest! {
    #[test]
    fn bytes_keep_order_and_content(
        seed: u64,
        down in prop::collection::vec(1_usize..5_000, 0..40),
        up in prop::collection::vec(1_usize..5_000, 0..40),
        profile in prop::sample::select(vec![
            "unshaped", "gsm", "3g,loss=5%", "wifi,jitter=40ms,loss=20%", "rtt=10ms,jitter=10ms",
        ]),
    ) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let link = link(profile, seed);
            let Connection { client, origin, relay } = connect(&link, 1);
            let (from_origin, to_client) = tokio::io::split(client);
            let (from_client, to_origin) = tokio::io::split(origin);
            tokio::join!(
                pieces(to_origin, from_origin, &down, seed),
                pieces(to_client, from_client, &up, !seed),
            );
            assert_eq!(relay.await.expect("it ends"), RelayEnd::Closed);
            let sums = (down.iter().sum::<usize>() as u64, up.iter().sum::<usize>() as u64);
            assert_eq!((link.bytes_down(), link.bytes_up()), sums);
        });
    }
}

/// Sends bytes in pieces, and checks that exactly they come.
async fn pieces(
    mut from: impl tokio::io::AsyncWrite + Unpin,
    mut to: impl tokio::io::AsyncRead + Unpin,
    pieces: &[usize],
    seed: u64,
) {
    let bytes: usize = pieces.iter().sum();
    let byte = |place: usize| (seed.wrapping_add((place * place) as u64) >> 3).to_le_bytes()[0];
    let all: Vec<u8> = (0..bytes).map(byte).collect();
    let write = async {
        let mut rest = &all[..];
        for piece in pieces {
            let (part, others) = rest.split_at(*piece);
            from.write_all(part).await.expect("it takes it");
            rest = others;
            sleep(ms(*piece as u64 % 7)).await;
        }
        from.shutdown().await.expect("it is open");
    };
    let read = async {
        let mut received = Vec::new();
        to.read_to_end(&mut received).await.expect("it ends");
        assert!(received == all, "{} of {} bytes", received.len(), all.len());
    };
    tokio::join!(write, read);
}
