//! IP addresses, networks and URLs.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use apiloom_meta::field::{echoed, go_quote};

use super::go_url::Url;
use super::{arg, go_address, opaque, text};
use crate::run::{Outcome, Run, Stop, tenth};
use crate::value::{Made, Map, OpaqueValue, Value};

/// An address with the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

impl Cidr {
    fn parse(text: &str) -> Result<Self, Stop> {
        let wrong = |why: &str| {
            Stop::error(format!(
                "network address parse error during conversion from string: {why}"
            ))
        };
        let (address, bits) = go_address::parse_prefix(text).map_err(|why| {
            wrong(&format!(
                "network address parse error during conversion from string: {why}"
            ))
        })?;
        if is_mapped(&address) {
            return Err(wrong(&mapped(text)));
        }
        Ok(Self { address, bits })
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

/// Whether an IPv4 address has the form of IPv6.
fn is_mapped(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

fn mapped(text: &str) -> String {
    let shown = go_quote(&echoed(text));
    format!("IPv4-mapped IPv6 address {shown} is not allowed")
}

/// Reads an address. Those with a zone are refused, and IPv4 addresses in the form of IPv6.
fn parse_ip(text: &str) -> Result<IpAddr, Stop> {
    let shown = || go_quote(&echoed(text));
    let found = go_address::parse(text).map_err(|why| {
        Stop::error(format!(
            "IP Address {} parse error during conversion from string: {why}",
            shown()
        ))
    })?;
    if found.has_zone {
        return Err(Stop::error(format!(
            "IP address {} with zone value is not allowed",
            shown()
        )));
    }
    if is_mapped(&found.address) {
        return Err(Stop::error(mapped(text)));
    }
    Ok(found.address)
}

fn charge_text<'a>(run: &mut Run<'a>, args: &[Value<'a>], passes: u64) -> Result<(), Stop> {
    run.charge(tenth(arg(args, 0)?.size().saturating_mul(passes)))
}

pub(crate) fn ip<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    if let Value::Opaque(_) = arg(args, 0)? {
        run.charge(1)?;
        return Ok(Value::opaque(OpaqueValue::Ip(network(args, 0)?.address)));
    }
    charge_text(run, args, 1)?;
    let address = parse_ip(text(arg(args, 0)?)?)?;
    Ok(Value::opaque(OpaqueValue::Ip(address)))
}

pub(crate) fn is_ip<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 1)?;
    Ok(Value::Bool(parse_ip(text(arg(args, 0)?)?).is_ok()))
}

/// Whether the text is how the address is printed.
pub(crate) fn is_canonical<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 2)?;
    let text = text(arg(args, 0)?)?;
    let address = parse_ip(text)?;
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
    let found = Cidr::parse(text(arg(args, 0)?)?)?;
    Ok(Value::opaque(OpaqueValue::Cidr(found)))
}

pub(crate) fn is_cidr<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 1)?;
    Ok(Value::Bool(Cidr::parse(text(arg(args, 0)?)?).is_ok()))
}

pub(crate) fn contains_ip<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let cidr = network(args, 0)?;
    run.charge(tenth(2 * arg(args, 0)?.size()))?;
    let address = match arg(args, 1)? {
        value @ Value::Text(text) => {
            run.charge(tenth(value.size()))?;
            // As in kube-apiserver, the error of the text is lost.
            parse_ip(text.as_str()).map_err(|_| Stop::overload())?
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
            Cidr::parse(text.as_str())?
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

pub(crate) fn url<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 1)?;
    let found = Url::parse(text(arg(args, 0)?)?).map_err(|why| {
        Stop::error(format!(
            "URL parse error during conversion from string: {why}"
        ))
    })?;
    Ok(Value::opaque(OpaqueValue::Url(Box::new(found))))
}

pub(crate) fn is_url<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args, 1)?;
    Ok(Value::Bool(Url::parse(text(arg(args, 0)?)?).is_ok()))
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
    url_part(run, args, |url| url.host_and_port().0)
}

pub(crate) fn port<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    url_part(run, args, |url| url.host_and_port().1)
}

pub(crate) fn escaped_path<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    let OpaqueValue::Url(url) = opaque(args, 0)? else {
        return Err(Stop::overload());
    };
    Ok(Value::text(url.escaped_path()))
}

pub(crate) fn query<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let OpaqueValue::Url(url) = opaque(args, 0)? else {
        return Err(Stop::overload());
    };
    run.charge(1 + tenth(url.query.len() as u64))?;
    let mut names: Vec<String> = Vec::new();
    let mut values: HashMap<String, Vec<Value<'a>>> = HashMap::new();
    for (name, value) in url.pairs() {
        run.charge(1)?;
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
