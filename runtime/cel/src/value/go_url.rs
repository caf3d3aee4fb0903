//! URLs as Go's `net/url` reads them, with its errors: a scheme, or an absolute path.

use apiloom_schema::field::{echoed, go_quote};

use super::go_address;

/// A URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: String,
    /// What follows the scheme of a URL without a host, such as `mailto:a@b`.
    opaque: String,
    user: Option<String>,
    /// With the port, without escapes.
    pub(crate) host: String,
    /// As it is written.
    path: String,
    pub(crate) query: String,
    fragment: String,
}

/// Which characters may stand in a part of a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Host,
    Zone,
    Path,
    Query,
    Fragment,
}

impl Url {
    /// Reads a URL as Go's `url.ParseRequestURI` does.
    pub(crate) fn parse_request(text: &str) -> Result<Self, String> {
        Self::parts(text, true).map_err(|why| of_text(text, &why))
    }

    /// Reads what Go's `url.ParseRequestURI` accepts, as `url.Parse` reads it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::parse_request(text)?;
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self::parts(before, false).map_err(|why| of_text(before, &why))?;
        unescape(fragment, Part::Fragment).map_err(|why| of_text(text, &why))?;
        fragment.clone_into(&mut url.fragment);
        Ok(url)
    }

    fn parts(text: &str, is_request: bool) -> Result<Self, String> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let mut url = Self::default();
        if text.is_empty() && is_request {
            return Err("empty url".to_owned());
        }
        if text == "*" {
            text.clone_into(&mut url.path);
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        query.clone_into(&mut url.query);
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if is_request {
                return Err("invalid URI for request".to_owned());
            }
        }
        let may_have_host = !url.scheme.is_empty() || !is_request && !rest.starts_with("///");
        let path = match rest.strip_prefix("//").filter(|_| may_have_host) {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                url.read_authority(authority)?;
                path
            }
            None => rest,
        };
        unescape(path, Part::Path)?;
        path.clone_into(&mut url.path);
        Ok(url)
    }

    fn read_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = read_host(&self.scheme, host)?;
        let Some(user) = user else {
            return Ok(());
        };
        let may_stand =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        if !user.bytes().all(may_stand) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        unescape(name, Part::User)?;
        unescape(password, Part::User)?;
        self.user = Some(user.to_owned());
        Ok(())
    }

    /// The host without brackets, and the port.
    pub(crate) fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':') {
            Some(at) if is_port(&self.host[at..]) => (&self.host[..at], &self.host[at + 1..]),
            _ => (&*self.host, ""),
        };
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        (inner.unwrap_or(host), port)
    }

    /// The path as it is written, if that is valid, or with other escapes.
    pub(crate) fn escaped_path(&self) -> String {
        let is_valid = |byte: u8| is_plain(byte, Part::Path) || b"!'()*;%[]".contains(&byte);
        if self.path == "*" || self.path.bytes().all(is_valid) {
            return self.path.clone();
        }
        let mut path = String::with_capacity(self.path.len());
        for byte in unescape(&self.path, Part::Path).unwrap_or_default() {
            if is_plain(byte, Part::Path) {
                path.push(char::from(byte));
            } else {
                path.push_str(&format!("%{byte:02X}"));
            }
        }
        path
    }

    /// The names and values of the query, without malformed ones.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        let pairs = self.query.split('&');
        let pairs = pairs.filter(|pair| !pair.is_empty() && !pair.contains(';'));
        pairs.filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = |part: &str| Some(text_of(&unescape(part, Part::Query).ok()?));
            Some((text(name)?, text(value)?))
        })
    }
}

fn of_text(text: &str, why: &str) -> String {
    format!("parse {}: {why}", go_quote(&echoed(text)))
}

/// The scheme, without one the empty text, and the rest.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic();
    let may_follow = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    match text.bytes().position(|byte| !may_follow(byte)) {
        Some(0) if text.starts_with(':') => Err("missing protocol scheme".to_owned()),
        Some(at) if text[at..].starts_with(':') && text.bytes().next().is_some_and(is_letter) => {
            Ok((&text[..at], &text[at + 1..]))
        }
        _ => Ok(("", text)),
    }
}

/// The host and port without escapes.
fn read_host(scheme: &str, host: &str) -> Result<String, String> {
    let wrong_port = |port: &str| format!("invalid port {} after host", go_quote(&echoed(port)));
    match host.rfind('[') {
        Some(0) => {}
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {
            let first = host.find(':');
            let colon = if matches!(scheme, "http" | "https") {
                first
            } else {
                host.rfind(':')
            };
            if let Some(port) = colon.map(|at| &host[at..]).filter(|port| !is_port(port)) {
                return Err(wrong_port(port));
            }
            return Ok(text_of(&unescape(host, Part::Host)?));
        }
    }
    let end = host.rfind(']').ok_or("missing ']' in host")?;
    let (name, port) = (&host[1..end], &host[end + 1..]);
    if !is_port(port) {
        return Err(wrong_port(port));
    }
    let mut unescaped = Vec::new();
    let zone = name.find("%25").unwrap_or(name.len());
    unescaped.extend(unescape(&name[..zone], Part::Host)?);
    unescaped.extend(unescape(&name[zone..], Part::Zone)?);
    let name = text_of(&unescaped);
    let found = go_address::parse(&name).map_err(|why| format!("invalid host: {why}"))?;
    if found.address.is_ipv4() {
        return Err("invalid IP-literal".to_owned());
    }
    Ok(format!("[{name}]{port}"))
}

/// The text of unescaped bytes. Go keeps those that are none.
fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a text is empty, or a colon and digits.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':');
    text.is_empty() || digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a byte stands for itself.
fn is_plain(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return true;
    }
    match part {
        Part::Host | Part::Zone => b"!$&'()*+,;=:[]<>\"".contains(&byte),
        Part::Path => b"$&+,/:;=@".contains(&byte),
        Part::User | Part::Query | Part::Fragment => false,
    }
}

/// Resolves `%xx`, and `+` in queries.
fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let is_host = matches!(part, Part::Host | Part::Zone);
    let bytes = text.as_bytes();
    let mut found = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                found.push(escaped(bytes, at, part)?);
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => found.push(b' '),
            byte if is_host && byte.is_ascii() && !is_plain(*byte, part) => {
                let shown = go_quote(&char::from(*byte).to_string());
                return Err(format!("invalid character {shown} in host name"));
            }
            byte => found.push(*byte),
        }
        at += 1;
    }
    Ok(found)
}

/// The byte of an escape.
fn escaped(bytes: &[u8], at: usize, part: Part) -> Result<u8, String> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    let byte = match (digit(at + 1), digit(at + 2)) {
        (Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
        _ => None,
    };
    let escape = &bytes[at..bytes.len().min(at + 3)];
    let is_allowed = |byte: &u8| match part {
        // Only what is not ASCII is escaped in a host, and in a zone only what may stand there.
        Part::Host => !byte.is_ascii() || escape == b"%25",
        Part::Zone => escape == b"%25" || *byte == b' ' || is_plain(*byte, Part::Host),
        _ => true,
    };
    byte.filter(is_allowed).ok_or_else(|| {
        let escape = String::from_utf8_lossy(escape);
        format!("invalid URL escape {}", go_quote(&escape))
    })
}
