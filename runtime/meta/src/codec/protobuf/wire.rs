//! The wire format of Protobuf: keys, variable-length integers, and lengths.

/// Wire type of `int32`, `int64`, `uint32`, `uint64` and `bool`.
pub(super) const VARINT: u8 = 0;
/// Wire type of `double`.
pub(super) const FIXED64: u8 = 1;
/// Wire type of text, bytes, messages and packed lists.
pub(super) const BYTES: u8 = 2;
/// Wire type of `float`.
pub(super) const FIXED32: u8 = 5;

/// Maximum nesting of groups in a field that is skipped.
const MAX_GROUPS: usize = 100;

/// The rest of an encoded message.
#[derive(Clone, Copy)]
pub(super) struct Wire<'a>(pub(super) &'a [u8]);

/// The value of a field as it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WireValue<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
    /// A group, which no message of Kubernetes has.
    Group,
}

impl<'a> WireValue<'a> {
    /// Whether it is the zero of its type, which means the same as an absent field.
    pub(super) fn is_empty(self) -> bool {
        match self {
            Self::Varint(number) => number == 0,
            Self::Fixed64(bytes) => bytes == [0; 8],
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Fixed32(bytes) => bytes == [0; 4],
            Self::Group => false,
        }
    }

    fn wrong(self, wanted: &str) -> String {
        let sent = match self {
            Self::Varint(_) => "a number",
            Self::Fixed64(_) => "64 bits",
            Self::Bytes(_) => "bytes with a length",
            Self::Fixed32(_) => "32 bits",
            Self::Group => "a group",
        };
        format!("expected {wanted}, found {sent}")
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong("bytes with a length")),
        }
    }

    pub(super) fn varint(self) -> Result<u64, String> {
        match self {
            Self::Varint(value) => Ok(value),
            other => Err(other.wrong("a number")),
        }
    }

    pub(super) fn fixed64(self) -> Result<[u8; 8], String> {
        match self {
            Self::Fixed64(bytes) => Ok(bytes),
            other => Err(other.wrong("64 bits")),
        }
    }

    pub(super) fn fixed32(self) -> Result<[u8; 4], String> {
        match self {
            Self::Fixed32(bytes) => Ok(bytes),
            other => Err(other.wrong("32 bits")),
        }
    }
}

/// Error text for a message that ends within a field.
fn cut_off() -> String {
    "the message ends within a field".to_owned()
}

impl<'a> Wire<'a> {
    /// Reads the next field: its number and value; `None` at the end of the message.
    pub(super) fn next_field(&mut self) -> Result<Option<(u32, WireValue<'a>)>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.key()?;
        self.value(number, wire_type, 0)
            .map(|value| Some((number, value)))
    }

    fn key(&mut self) -> Result<(u32, u8), String> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| format!("invalid field number {}", key >> 3))?;
        Ok((number, (key & 7) as u8))
    }

    fn value(
        &mut self,
        number: u32,
        wire_type: u8,
        groups: usize,
    ) -> Result<WireValue<'a>, String> {
        Ok(match wire_type {
            VARINT => WireValue::Varint(self.varint()?),
            FIXED64 => WireValue::Fixed64(self.array()?),
            BYTES => {
                let len = self.varint()?;
                let len = usize::try_from(len).map_err(|_| cut_off())?;
                WireValue::Bytes(self.take(len)?)
            }
            FIXED32 => WireValue::Fixed32(self.array()?),
            3 => {
                if groups == MAX_GROUPS {
                    return Err("the groups are nested too deeply".to_owned());
                }
                loop {
                    let (inner, wire_type) = self.key()?;
                    if wire_type == 4 {
                        if inner == number {
                            return Ok(WireValue::Group);
                        }
                        return Err("unexpected end of a group".to_owned());
                    }
                    self.value(inner, wire_type, groups + 1)?;
                }
            }
            4 => return Err("unexpected end of a group".to_owned()),
            other => return Err(format!("invalid wire type {other}")),
        })
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads this number of bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Reads a variable-length integer.
    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for (at, &byte) in self.0.iter().enumerate() {
            // The tenth byte has one bit of 64.
            if at == 9 && byte > 1 {
                return Err("a number has more than 64 bits".to_owned());
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.0 = &self.0[at + 1..];
                return Ok(value);
            }
        }
        Err(cut_off())
    }
}

/// Number of bytes of a variable-length integer.
pub(super) fn varint_bytes(value: u64) -> usize {
    let bits = (u64::BITS - value.leading_zeros()).max(1);
    bits.div_ceil(7) as usize
}

/// Appends a variable-length integer.
pub(super) fn append_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the key of a field.
pub(super) fn append_key(number: u32, wire_type: u8, out: &mut Vec<u8>) {
    append_varint(u64::from(number) << 3 | u64::from(wire_type), out);
}

/// Appends a field with text or bytes.
pub(super) fn append_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    append_key(number, BYTES, out);
    append_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// The place of a length that is written when what it measures is complete.
#[must_use]
pub(super) struct LengthPlace(usize);

impl LengthPlace {
    /// Reserves the place: one byte, enough for most.
    pub(super) fn begin(out: &mut Vec<u8>) -> Self {
        out.push(0);
        Self(out.len())
    }

    /// Writes the length of what was appended since; moves that if the length has more than one byte.
    pub(super) fn end(self, out: &mut Vec<u8>) {
        let start = self.0;
        let len = out.len() - start;
        if len < 0x80 {
            out[start - 1] = len as u8;
            return;
        }
        let more = varint_bytes(len as u64) - 1;
        let end = out.len();
        out.resize(end + more, 0);
        out.copy_within(start..end, start + more);
        let mut rest = len;
        for place in &mut out[start - 1..start + more] {
            *place = rest as u8 | 0x80;
            rest >>= 7;
        }
        out[start + more - 1] &= 0x7f;
    }
}
