//! IP addresses, networks and URLs.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use super::{arg, opaque, text};
use crate::run::{Outcome, Run, Stop, tenth};
use crate::value::{Made, Map, OpaqueValue, Value};

/// An address with the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

impl Cidr {
    fn width(address: &IpAddr) -> u8 {
        if address.is_ipv4() { 32 } else { 128 }
    }

    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address = parse_ip(address)?;
        let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || (bits.len() > 1 && bits.starts_with('0')) {
            return None;
        }
        let bits: u8 = bits.parse().ok()?;
        (bits <= Self::width(&address)).then_some(Self { address, bits })
    }

    fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4((u32::from(address) & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.bits))
                    .unwrap_or(0);
                IpAddr::V6((u128::from(address) & mask).into())
            }
        };
        Self { address, ..self }
    }

    fn has(self, address: IpAddr) -> bool {
        let other = Self { address, ..self };
        address.is_ipv4() == self.address.is_ipv4() && other.masked() == self.masked()
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Reads an address. IPv4 addresses in the form of IPv6 are refused.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => None,
        address => Some(address),
    }
}

fn charge_text<'a>(run: &mut Run<'a>, args: &[Value<'a>], passes: u64) -> Result<(), Stop> {
    run.charge(tenth(arg(args, 0)?.size().saturating_mul(passes)))
}

fn ip_error(text: &str) -> Stop {
    let shown = apiloom_meta::field::go_quote(&apiloom_meta::field::echoed(text));
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let has_zone = text
        .split_once('%')
        .is_some_and(|(address, _)| is_address(address));
    Stop::error(if is_address(text) {
        format!("IPv4-mapped IPv6 address {shown} is not allowed")
    } else if has_zone {
        format!("IP address {shown} with zone value is not allowed")
    } else {
        format!("IP Address {shown} parse error during conversion from string")
    })
}

fn cidr_error() -> Stop {
    Stop::error("network address parse error during conversion from string")
}

pub(crate) fn ip<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    if let Value::Opaque(_) = arg(args, 0)? {
        run.charge(1)?;
        return Ok(Value::opaque(OpaqueValue::Ip(network(args, 0)?.address)));
    }
    charge_text(run, args, 1)?;
    let text = text(arg(args, 0)?)?;
    let address = parse_ip(text).ok_or_else(|| ip_error(text))?;
    Ok(Value::opaque(OpaqueValue::Ip(address)))
}

pub(crate) fn is_ip<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 1)?;
    Ok(Value::Bool(parse_ip(text(arg(args, 0)?)?).is_some()))
}

/// Whether the text is how the address is printed.
pub(crate) fn is_canonical<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 2)?;
    let text = text(arg(args, 0)?)?;
    let address = parse_ip(text).ok_or_else(|| ip_error(text))?;
    Ok(Value::Bool(address.to_string() == text))
}

fn address(args: &[Value<'_>], index: usize) -> Result<IpAddr, Stop> {
    match opaque(args, index)? {
        OpaqueValue::Ip(address) => Ok(*address),
        _ => Err(Stop::overload()),
    }
}

fn network(args: &[Value<'_>], index: usize) -> Result<Cidr, Stop> {
    match opaque(args, index)? {
        OpaqueValue::Cidr(cidr) => Ok(*cidr),
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn family<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    Ok(Value::Int(if address(args, 0)?.is_ipv4() { 4 } else { 6 }))
}

fn tested<'a>(run: &mut Run<'a>, args: &[Value<'a>], by: fn(&IpAddr) -> bool) -> Outcome<'a> {
    run.charge(1)?;
    Ok(Value::Bool(by(&address(args, 0)?)))
}

fn link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

pub(crate) fn is_unspecified<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    tested(run, args, IpAddr::is_unspecified)
}

pub(crate) fn is_loopback<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    tested(run, args, IpAddr::is_loopback)
}

pub(crate) fn is_link_local_multicast<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    tested(run, args, |address| match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    })
}

pub(crate) fn is_link_local_unicast<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    tested(run, args, link_local)
}

pub(crate) fn is_global_unicast<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    tested(run, args, |address| {
        let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        !(address.is_unspecified()
            || address.is_loopback()
            || address.is_multicast()
            || link_local(address)
            || is_broadcast)
    })
}

pub(crate) fn cidr<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 1)?;
    let found = Cidr::parse(text(arg(args, 0)?)?).ok_or_else(cidr_error)?;
    Ok(Value::opaque(OpaqueValue::Cidr(found)))
}

pub(crate) fn is_cidr<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 1)?;
    Ok(Value::Bool(Cidr::parse(text(arg(args, 0)?)?).is_some()))
}

pub(crate) fn contains_ip<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let cidr = network(args, 0)?;
    run.charge(tenth(2 * arg(args, 0)?.size()))?;
    let address = match arg(args, 1)? {
        value @ Value::Text(text) => {
            run.charge(tenth(value.size()))?;
            parse_ip(text.as_str()).ok_or_else(|| ip_error(text.as_str()))?
        }
        _ => address(args, 1)?,
    };
    Ok(Value::Bool(cidr.has(address)))
}

pub(crate) fn contains_cidr<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let cidr = network(args, 0)?;
    let size = arg(args, 0)?.size();
    run.charge(tenth(2 * size) + tenth(size) + 1)?;
    let other = match arg(args, 1)? {
        value @ Value::Text(text) => {
            run.charge(tenth(value.size()))?;
            Cidr::parse(text.as_str()).ok_or_else(cidr_error)?
        }
        _ => network(args, 1)?,
    };
    Ok(Value::Bool(
        cidr.bits <= other.bits && cidr.has(other.address),
    ))
}

pub(crate) fn prefix_length<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    Ok(Value::Int(i64::from(network(args, 0)?.bits)))
}

pub(crate) fn masked<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    Ok(Value::opaque(OpaqueValue::Cidr(network(args, 0)?.masked())))
}

/// A URL with a scheme, or an absolute path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

impl Url {
    /// Reads a URL as Go's `url.ParseRequestURI` does.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.bytes().any(|byte| byte.is_ascii_control()) {
            return None;
        }
        let (scheme, rest) = match text.find(':') {
            Some(at) if is_scheme(&text[..at]) => {
                (text[..at].to_ascii_lowercase(), &text[at + 1..])
            }
            Some(0) => return None,
            _ => (String::new(), text),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self {
            scheme,
            query: query.to_owned(),
            ..Self::default()
        };
        if !rest.starts_with('/') {
            // A URL such as `mailto:a@b` has neither host nor path.
            return (!url.scheme.is_empty()).then_some(url);
        }
        let mut path = rest;
        if let Some(after) = rest.strip_prefix("//").filter(|_| !url.scheme.is_empty()) {
            let end = after.find('/').unwrap_or(after.len());
            url.host = host_of(&after[..end])?.to_owned();
            path = &after[end..];
        }
        unescape(path, false)?;
        url.path = path.to_owned();
        Some(url)
    }

    fn hostname(&self) -> &str {
        let host = self.without_port();
        host.strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
    }

    fn without_port(&self) -> &str {
        match self.host.rfind(':') {
            Some(at) if !self.host[at..].contains(']') => &self.host[..at],
            _ => &self.host,
        }
    }

    fn port(&self) -> &str {
        self.host[self.without_port().len()..].trim_start_matches(':')
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// The host and port of an authority.
fn host_of(authority: &str) -> Option<&str> {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let port = if let Some(inner) = host.strip_prefix('[') {
        let end = inner.find(']')?;
        inner[..end]
            .split('%')
            .next()?
            .parse::<std::net::Ipv6Addr>()
            .ok()?;
        &inner[end + 1..]
    } else {
        let is_wrong = |byte: u8| {
            matches!(
                byte,
                b' ' | b'<' | b'>' | b'"' | b'\\' | b'^' | b'`' | b'{' | b'}' | b'|'
            )
        };
        if host.bytes().any(is_wrong) || unescape(host, false).is_none() {
            return None;
        }
        host.find(':').map_or("", |at| &host[at..])
    };
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    is_port.then_some(host)
}

/// Resolves `%xx`, and `+` in queries; `None` if an escape is malformed.
fn unescape(text: &str, is_query: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if is_query => b' ',
            byte => byte,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn url<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 1)?;
    let found = Url::parse(text(arg(args, 0)?)?)
        .ok_or_else(|| Stop::error("URL parse error during conversion from string"))?;
    Ok(Value::opaque(OpaqueValue::Url(Box::new(found))))
}

pub(crate) fn is_url<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 1)?;
    Ok(Value::Bool(Url::parse(text(arg(args, 0)?)?).is_some()))
}

fn url_part<'a>(run: &mut Run<'a>, args: &[Value<'a>], of: fn(&Url) -> &str) -> Outcome<'a> {
    run.charge(1)?;
    match opaque(args, 0)? {
        OpaqueValue::Url(url) => Ok(Value::text(of(url))),
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn scheme<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    url_part(run, args, |url| &url.scheme)
}

pub(crate) fn host<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    url_part(run, args, |url| &url.host)
}

pub(crate) fn hostname<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    url_part(run, args, Url::hostname)
}

pub(crate) fn port<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    url_part(run, args, Url::port)
}

pub(crate) fn escaped_path<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    let OpaqueValue::Url(url) = opaque(args, 0)? else {
        return Err(Stop::overload());
    };
    let mut path = String::with_capacity(url.path.len());
    for byte in url.path.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@/%[]".contains(&byte);
        if is_plain {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    Ok(Value::text(path))
}

pub(crate) fn query<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let OpaqueValue::Url(url) = opaque(args, 0)? else {
        return Err(Stop::overload());
    };
    run.charge(1 + tenth(url.query.len() as u64))?;
    let mut names: Vec<String> = Vec::new();
    let mut values: HashMap<String, Vec<Value<'a>>> = HashMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty()) {
        run.charge(1)?;
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (unescape(name, true), unescape(value, true)) else {
            continue;
        };
        let known = values.entry(name.clone()).or_default();
        if known.is_empty() {
            names.push(name);
        }
        known.push(Value::text(value));
    }
    let mut made = Made::default();
    for name in names {
        let list = values.remove(&name).unwrap_or_default();
        made.insert(Value::text(name), Value::list(list))?;
    }
    Ok(Value::Map(Map::Made(Rc::new(made))))
}
