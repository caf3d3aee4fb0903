//! IP addresses and networks.

use std::fmt;
use std::net::IpAddr;

use apiloom_schema::field::{echoed, go_quote};

use super::go_address;
use crate::stop::Stop;

/// An address with the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

impl Cidr {
    pub(crate) fn parse(text: &str) -> Result<Self, Stop> {
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

    pub(crate) fn masked(self) -> Self {
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

    pub(crate) fn has(self, address: IpAddr) -> bool {
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
pub(crate) fn parse_ip(text: &str) -> Result<IpAddr, Stop> {
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
