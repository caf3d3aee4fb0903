//! Addresses and networks as Go's `net/netip` reads them, with its errors.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use apiloom_schema::field::{echoed, go_quote};

/// An address with its zone.
pub(crate) struct Found {
    pub(crate) address: IpAddr,
    pub(crate) has_zone: bool,
}

/// Reads an address.
pub(crate) fn parse(text: &str) -> Result<Found, String> {
    let found = match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => read_v4(text).map(|octets| Found {
            address: Ipv4Addr::from(octets).into(),
            has_zone: false,
        }),
        Some(b':') => read_v6(text),
        Some(_) => Err(("missing IPv6 address", "")),
        None => Err(("unable to parse IP", "")),
    };
    found.map_err(|(why, at)| {
        let shown = go_quote(&echoed(text));
        if at.is_empty() {
            return format!("ParseAddr({shown}): {why}");
        }
        let at = go_quote(&echoed(at));
        format!("ParseAddr({shown}): {why} (at {at})")
    })
}

/// Reads an address and the length of a prefix.
pub(crate) fn parse_prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = |why: String| format!("netip.ParsePrefix({}): {why}", go_quote(&echoed(text)));
    let (address, bits) = text
        .rsplit_once('/')
        .ok_or_else(|| wrong("no '/'".to_owned()))?;
    let found = parse(address).map_err(wrong)?;
    if found.has_zone {
        return Err(wrong("IPv6 zones cannot be present in a prefix".to_owned()));
    }
    let is_signed = bits.len() > 1 && !bits.starts_with(|c: char| matches!(c, '1'..='9'));
    let number: Option<i64> = bits.parse().ok().filter(|_| !is_signed);
    let number = number.ok_or_else(|| {
        let bits = go_quote(&echoed(bits));
        wrong(format!("bad bits after slash: {bits}"))
    })?;
    let width = if found.address.is_ipv4() { 32 } else { 128 };
    let in_range = u8::try_from(number).ok().filter(|bits| *bits <= width);
    let bits = in_range.ok_or_else(|| wrong("prefix length out of range".to_owned()))?;
    Ok((found.address, bits))
}

/// Why a text is not an address, and where.
type Wrong<'t> = (&'static str, &'t str);

fn read_v4(text: &str) -> Result<[u8; 4], Wrong<'_>> {
    let mut octets = [0; 4];
    let (mut index, mut value, mut digits) = (0, 0_u32, 0);
    for (at, byte) in text.bytes().enumerate() {
        let rest = text.get(at..).unwrap_or_default();
        match byte {
            b'0'..=b'9' if digits == 1 && value == 0 => {
                return Err(("IPv4 field has octet with leading zero", ""));
            }
            b'0'..=b'9' => {
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", ""));
                }
            }
            b'.' if digits == 0 || rest.len() == 1 => {
                return Err(("IPv4 field must have at least one digit", rest));
            }
            b'.' if index == 3 => return Err(("IPv4 address too long", "")),
            b'.' => {
                octets[index] = value as u8;
                (index, value, digits) = (index + 1, 0, 0);
            }
            _ => return Err(("unexpected character", rest)),
        }
    }
    if index < 3 {
        return Err(("IPv4 address too short", ""));
    }
    octets[3] = value as u8;
    Ok(octets)
}

fn read_v6(text: &str) -> Result<Found, Wrong<'_>> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", "")),
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    Ok(Found {
        address: IpAddr::V6(read_groups(address)?),
        has_zone: zone.is_some(),
    })
}

fn read_groups(text: &str) -> Result<Ipv6Addr, Wrong<'_>> {
    let mut groups: Vec<u16> = Vec::with_capacity(8);
    let mut ellipsis = None;
    let mut rest = text;
    if let Some(after) = text.strip_prefix("::") {
        (ellipsis, rest) = (Some(0), after);
        if after.is_empty() {
            return Ok(Ipv6Addr::UNSPECIFIED);
        }
    }
    while groups.len() < 8 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        match digits {
            0 => {
                return Err((
                    "each colon-separated field must have at least one digit",
                    rest,
                ));
            }
            1..=4 => {}
            _ => return Err(("each group must have 4 or less digits", rest)),
        }
        if rest[digits..].starts_with('.') {
            embed_v4(&mut groups, rest, ellipsis.is_some())?;
            rest = "";
            break;
        }
        let group = u16::from_str_radix(&rest[..digits], 16);
        groups.push(group.map_err(|_| ("IPv6 field has value >=2^16", rest))?);
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(("unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(("colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err(("multiple :: in address", rest));
            }
            (ellipsis, rest) = (Some(groups.len()), after);
            if after.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    match (ellipsis, 8 - groups.len().min(8)) {
        (None, 0) => {}
        (None, _) => return Err(("address string too short", "")),
        (Some(_), 0) => {
            return Err(("the :: must expand to at least one field of zeros", ""));
        }
        (Some(at), missing) => drop(groups.splice(at..at, std::iter::repeat_n(0, missing))),
    }
    let groups: [u16; 8] = groups
        .try_into()
        .map_err(|_| ("address string too short", ""))?;
    Ok(Ipv6Addr::from(groups))
}

/// Adds the groups of an IPv4 address at the end.
fn embed_v4<'t>(groups: &mut Vec<u16>, rest: &'t str, has_ellipsis: bool) -> Result<(), Wrong<'t>> {
    if !has_ellipsis && groups.len() != 6 {
        return Err((
            "embedded IPv4 address must replace the final 2 fields of the address",
            rest,
        ));
    }
    if groups.len() > 6 {
        return Err((
            "too many hex fields to fit an embedded IPv4 at the end of the address",
            rest,
        ));
    }
    let [a, b, c, d] = read_v4(rest)?;
    groups.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
    Ok(())
}
