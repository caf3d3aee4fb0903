//! IP addresses, networks and URLs.

use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

use super::{arg, opaque, text};
use crate::meter::{Meter, tenth};
use crate::stop::Stop;
use crate::value::address::{Cidr, parse_ip};
use crate::value::go_url::Url;
use crate::value::{Made, Map, OpaqueValue, Outcome, Value};

fn charge_text<'a>(meter: &mut Meter<'a>, args: &[Value<'a>], passes: u64) -> Result<(), Stop> {
    meter.charge(tenth(arg(args, 0)?.size().saturating_mul(passes)))
}

pub(crate) fn ip<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    if let Value::Opaque(_) = arg(args, 0)? {
        meter.charge(1)?;
        return Ok(Value::opaque(OpaqueValue::Ip(network(args, 0)?.address)));
    }
    charge_text(meter, args, 1)?;
    let address = parse_ip(text(arg(args, 0)?)?)?;
    Ok(Value::opaque(OpaqueValue::Ip(address)))
}

pub(crate) fn is_ip<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(meter, args, 1)?;
    Ok(Value::Bool(parse_ip(text(arg(args, 0)?)?).is_ok()))
}

/// Whether the text is how the address is printed.
pub(crate) fn is_canonical<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(meter, args, 2)?;
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

pub(crate) fn family<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(Value::Int(if address(args, 0)?.is_ipv4() { 4 } else { 6 }))
}

fn tested<'a>(meter: &mut Meter<'a>, args: &[Value<'a>], by: fn(&IpAddr) -> bool) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(Value::Bool(by(&address(args, 0)?)))
}

fn link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

pub(crate) fn is_unspecified<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    tested(meter, args, IpAddr::is_unspecified)
}

pub(crate) fn is_loopback<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    tested(meter, args, IpAddr::is_loopback)
}

pub(crate) fn is_link_local_multicast<'a>(
    meter: &mut Meter<'a>,
    args: &[Value<'a>],
) -> Outcome<'a> {
    tested(meter, args, |address| match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    })
}

pub(crate) fn is_link_local_unicast<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    tested(meter, args, link_local)
}

pub(crate) fn is_global_unicast<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    tested(meter, args, |address| {
        let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        !(address.is_unspecified()
            || address.is_loopback()
            || address.is_multicast()
            || link_local(address)
            || is_broadcast)
    })
}

pub(crate) fn cidr<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(meter, args, 1)?;
    let found = Cidr::parse(text(arg(args, 0)?)?)?;
    Ok(Value::opaque(OpaqueValue::Cidr(found)))
}

pub(crate) fn is_cidr<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(meter, args, 1)?;
    Ok(Value::Bool(Cidr::parse(text(arg(args, 0)?)?).is_ok()))
}

pub(crate) fn contains_ip<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let cidr = network(args, 0)?;
    meter.charge(tenth(2 * arg(args, 0)?.size()))?;
    let address = match arg(args, 1)? {
        value @ Value::Text(text) => {
            meter.charge(tenth(value.size()))?;
            // As in kube-apiserver, the error of the text is lost.
            parse_ip(text.as_str()).map_err(|_| Stop::overload())?
        }
        _ => address(args, 1)?,
    };
    Ok(Value::Bool(cidr.has(address)))
}

pub(crate) fn contains_cidr<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let cidr = network(args, 0)?;
    let size = arg(args, 0)?.size();
    meter.charge(tenth(2 * size) + tenth(size) + 1)?;
    let other = match arg(args, 1)? {
        value @ Value::Text(text) => {
            meter.charge(tenth(value.size()))?;
            Cidr::parse(text.as_str())?
        }
        _ => network(args, 1)?,
    };
    Ok(Value::Bool(
        cidr.bits <= other.bits && cidr.has(other.address),
    ))
}

pub(crate) fn prefix_length<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(Value::Int(i64::from(network(args, 0)?.bits)))
}

pub(crate) fn masked<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(Value::opaque(OpaqueValue::Cidr(network(args, 0)?.masked())))
}

pub(crate) fn url<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(meter, args, 1)?;
    let found = Url::parse(text(arg(args, 0)?)?).map_err(|why| {
        Stop::error(format!(
            "URL parse error during conversion from string: {why}"
        ))
    })?;
    Ok(Value::opaque(OpaqueValue::Url(Box::new(found))))
}

pub(crate) fn is_url<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(meter, args, 1)?;
    Ok(Value::Bool(Url::parse(text(arg(args, 0)?)?).is_ok()))
}

fn url_part<'a>(meter: &mut Meter<'a>, args: &[Value<'a>], of: fn(&Url) -> &str) -> Outcome<'a> {
    meter.charge(1)?;
    match opaque(args, 0)? {
        OpaqueValue::Url(url) => Ok(Value::text(of(url))),
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn scheme<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    url_part(meter, args, |url| &url.scheme)
}

pub(crate) fn host<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    url_part(meter, args, |url| &url.host)
}

pub(crate) fn hostname<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    url_part(meter, args, |url| url.host_and_port().0)
}

pub(crate) fn port<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    url_part(meter, args, |url| url.host_and_port().1)
}

pub(crate) fn escaped_path<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    let OpaqueValue::Url(url) = opaque(args, 0)? else {
        return Err(Stop::overload());
    };
    Ok(Value::text(url.escaped_path()))
}

pub(crate) fn query<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let OpaqueValue::Url(url) = opaque(args, 0)? else {
        return Err(Stop::overload());
    };
    meter.charge(1 + tenth(url.query.len() as u64))?;
    let mut names: Vec<String> = Vec::new();
    let mut values: HashMap<String, Vec<Value<'a>>> = HashMap::new();
    for (name, value) in url.pairs() {
        meter.charge(1)?;
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
