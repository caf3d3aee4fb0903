//! HTTP/2 frames written by hand, which client libraries cannot send.

// Frame types of RFC 9113, section 6.
/// DATA.
pub const DATA: u8 = 0;
/// HEADERS.
pub const HEADERS: u8 = 1;
/// PRIORITY.
pub const PRIORITY: u8 = 2;
/// RST_STREAM.
pub const RST_STREAM: u8 = 3;
/// SETTINGS.
pub const SETTINGS: u8 = 4;
/// PUSH_PROMISE.
pub const PUSH_PROMISE: u8 = 5;
/// PING.
pub const PING: u8 = 6;
/// GOAWAY.
pub const GOAWAY: u8 = 7;
/// WINDOW_UPDATE.
pub const WINDOW_UPDATE: u8 = 8;
/// CONTINUATION.
pub const CONTINUATION: u8 = 9;

/// The flag of DATA and HEADERS that ends a stream.
pub const END_STREAM: u8 = 1;
/// The flag of HEADERS and CONTINUATION that ends a block.
pub const END_HEADERS: u8 = 4;
/// The flag of SETTINGS and PING that acknowledges them.
pub const ACK: u8 = 1;

/// The error code CANCEL, as the payload of a RST_STREAM frame.
pub const CANCEL: [u8; 4] = 8_u32.to_be_bytes();

/// What a client sends first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The start of a client's connection: the preface and empty SETTINGS.
pub fn preface() -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    push(&mut out, SETTINGS, 0, 0, &[]);
    out
}

/// Appends a frame.
pub fn push(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap();
    out.extend_from_slice(&length.to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// One frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, kind, flags, stream, payload);
    out
}

/// A block of header fields in HPACK, all literal and without indexing (RFC 7541, section 6.2.2).
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            push_length(&mut out, text.len());
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

/// An integer with a prefix of seven bits (RFC 7541, section 5.1).
fn push_length(out: &mut Vec<u8>, length: usize) {
    const PREFIX: usize = 127;
    if length < PREFIX {
        out.push(length as u8);
        return;
    }
    out.push(PREFIX as u8);
    let mut rest = length - PREFIX;
    while rest >= 128 {
        out.push((rest % 128 + 128) as u8);
        rest /= 128;
    }
    out.push(rest as u8);
}
