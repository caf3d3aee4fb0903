//! HTTP/2 frames written by hand, which client libraries cannot send.

/// Frame types of RFC 9113, section 6.
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

/// Flags of HEADERS.
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// The error code CANCEL, as the payload of a RST_STREAM frame.
pub(crate) const CANCEL: [u8; 4] = 8_u32.to_be_bytes();

/// The start of a connection: the preface and empty SETTINGS.
pub(crate) fn preface() -> Vec<u8> {
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    push(&mut out, SETTINGS, 0, 0, &[]);
    out
}

/// Appends a frame.
pub(crate) fn push(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap();
    out.extend_from_slice(&length.to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// A block of header fields in HPACK, all literal and without indexing (RFC 7541, section 6.2.2).
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
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
