//! A Redis Cluster that lives as long as a test.

use std::thread;
use std::time::{Duration, Instant};

use crate::daemon::{Daemon, Kind, with_free_ports};

/// The time that a cluster may take to agree. No test waits this long if all is well.
const PATIENCE: Duration = Duration::from_mins(1);
const SLOTS: u16 = 16_384;
const MASTERS: u16 = 3;

/// Three masters that share the slots evenly, in their order, and further nodes without slots.
pub(crate) struct Nodes {
    pub(crate) daemons: Vec<Daemon>,
    pub(crate) ports: Vec<u16>,
    password: &'static str,
}

impl Nodes {
    /// Starts three nodes; `None`, and a message, if Redis is not installed.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_with_password(arguments, "")
    }

    /// Starts three nodes that require this password.
    pub(crate) fn start_with_password(arguments: &[&str], password: &'static str) -> Option<Self> {
        let mut cluster = Self::none();
        cluster.password = password;
        for _ in 0..MASTERS {
            cluster.add(arguments)?;
        }
        for number in 0..MASTERS {
            let share = |number: u16| {
                u16::try_from(u32::from(SLOTS) * u32::from(number) / u32::from(MASTERS)).unwrap()
            };
            let (first, last) = (share(number), share(number + 1) - 1);
            let epoch = number + 1;
            cluster.tell(number.into(), &format!("CLUSTER SET-CONFIG-EPOCH {epoch}"));
            cluster.tell(number.into(), &format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        }
        cluster.meet();
        Some(cluster)
    }

    /// Returns a cluster without nodes.
    pub(crate) fn none() -> Self {
        Self { daemons: Vec::new(), ports: Vec::new(), password: "" }
    }

    /// Starts another node, which does not know the others yet.
    pub(crate) fn add(&mut self, arguments: &[&str]) -> Option<usize> {
        let (daemon, port) = with_free_ports(|port, bus| {
            let (port_text, bus) = (port.to_string(), bus.to_string());
            let mut all = vec!["--bind", "127.0.0.1", "--port", &port_text, "--cluster-port", &bus];
            all.extend(["--cluster-enabled", "yes", "--cluster-node-timeout", "15000"]);
            all.extend(["--repl-diskless-sync-delay", "0"]);
            all.extend(arguments);
            let daemon = Daemon::try_start(Kind::Redis, None, &all)?;
            Ok(daemon.map(|daemon| (daemon, port)))
        })?;
        self.daemons.push(daemon);
        self.ports.push(port);
        Some(self.daemons.len() - 1)
    }

    /// Introduces all nodes to each other, and waits until they know each other.
    pub(crate) fn meet(&self) {
        for number in 1..self.daemons.len() {
            let bus = self.ask::<Vec<String>>(number, "CONFIG GET cluster-port").remove(1);
            self.tell(0, &format!("CLUSTER MEET 127.0.0.1 {} {bus}", self.ports[number]));
        }
        self.wait_until_agreed();
    }

    /// Waits until each node reports a healthy cluster and knows all others.
    pub(crate) fn wait_until_agreed(&self) {
        let known = format!("cluster_known_nodes:{}\r", self.daemons.len());
        for number in 0..self.daemons.len() {
            self.wait_until(number, "CLUSTER INFO", |info: &String| {
                info.contains("cluster_state:ok\r") && info.contains(&known)
            });
        }
    }

    /// Repeats a command on a node until the answer is as expected.
    pub(crate) fn wait_until<T: redis::FromRedisValue + std::fmt::Debug>(
        &self,
        number: usize,
        command: &str,
        is_right: impl Fn(&T) -> bool,
    ) {
        let start = Instant::now();
        loop {
            let answer = self.ask(number, command);
            if is_right(&answer) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{command} still says {answer:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a command to one node, regardless of the slots.
    pub(crate) fn ask<T: redis::FromRedisValue>(&self, number: usize, command: &str) -> T {
        let socket = self.daemons[number].socket();
        let mut url = format!("redis+unix://{}", socket.display());
        if !self.password.is_empty() {
            url = format!("{url}?pass={}", self.password);
        }
        let client = redis::Client::open(url).unwrap();
        let mut words = command.split(' ');
        let mut asked = redis::cmd(words.next().unwrap());
        words.for_each(|word| drop(asked.arg(word).clone()));
        asked.query(&mut client.get_connection().unwrap()).unwrap()
    }

    pub(crate) fn tell(&self, number: usize, command: &str) {
        self.ask::<()>(number, command);
    }

    /// Returns the name by which other nodes know this one.
    pub(crate) fn id(&self, number: usize) -> String {
        self.ask(number, "CLUSTER MYID")
    }

    /// Returns a key of the node, made from `number`.
    pub(crate) fn key(&self, node: usize, number: usize) -> Vec<u8> {
        let slots = u64::from(SLOTS);
        let share = slots * node as u64 / 3..slots * (node as u64 + 1) / 3;
        let mut keys = (0..).map(|salt| format!("{number}:{salt}"));
        let is_there =
            |key: &String| share.contains(&self.ask::<u64>(0, &format!("CLUSTER KEYSLOT {key}")));
        keys.find(is_there).unwrap().into_bytes()
    }

    /// Returns the URL of its store by its first node.
    pub(crate) fn url(&self, options: &str) -> String {
        format!("redis+cluster://127.0.0.1:{}?{options}", self.ports[0])
    }
}
