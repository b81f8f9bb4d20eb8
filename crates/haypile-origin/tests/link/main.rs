//! The emulator of a link: in the time of a paused clock between streams in memory, and between
//! sockets.

mod profiles;
mod sockets;
mod streams;
mod transfers;
