//! Filters of system calls, as containers have them: a thread refuses calls to itself.

#![expect(unsafe_code, reason = "no library here installs a filter")]

use std::io;

/// A system call that is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub(crate) call: libc::c_long,
    /// Only with this value of the argument of this number, of which the lower half is compared.
    pub(crate) argument: Option<(u32, u32)>,
    pub(crate) errno: u32,
}

/// Offsets in what the kernel shows to a filter: the call's number, and the first argument.
const CALL: u32 = 0;
const ARGUMENTS: u32 = 16;

/// Refuses system calls to this thread, and to those that it starts, until they end.
pub(crate) fn refuse(refusals: &[Refusal]) -> io::Result<()> {
    let word = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0);
    let unless = |value, skipped| statement(libc::BPF_JMP | libc::BPF_JEQ, value, skipped);
    let done = |value| statement(libc::BPF_RET, value, 0);
    let mut filter = Vec::new();
    for refusal in refusals {
        let call = u32::try_from(refusal.call).expect("a number");
        let refused = done(libc::SECCOMP_RET_ERRNO | refusal.errno);
        filter.push(word(CALL));
        match refusal.argument {
            None => filter.extend([unless(call, 1), refused]),
            Some((number, value)) => filter.extend([
                unless(call, 3),
                word(ARGUMENTS + 8 * number),
                unless(value, 1),
                refused,
            ]),
        }
    }
    filter.push(done(libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).expect("few statements"),
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program is a valid one that lives until the kernel has copied it.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if installed { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A statement; one that compares skips this number of others where the values differ.
fn statement(code: u32, value: u32, skipped: u8) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).expect("a code"), jt: 0, jf: skipped, k: value }
}
