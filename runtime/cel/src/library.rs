//! The functions that rules can call: names, signatures, implementations.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::functions::{lists, network, numbers, strings, time, versions};
use crate::meter::Meter;
use crate::types::{Opaque, Type};
use crate::value::{Outcome, Value};

/// The implementation of a function: of all its overloads, with the target as the first argument.
pub(crate) type Implementation = for<'a> fn(&mut Meter<'a>, &[Value<'a>]) -> Outcome<'a>;

/// A signature. Variables are numbered from 0.
#[derive(Debug)]
pub(crate) struct Overload {
    /// Whether the first parameter is the value before the dot.
    pub(crate) is_member: bool,
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
    pub(crate) variables: u32,
}

/// A function with all its signatures.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
    pub(crate) run: Implementation,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A function's name, its implementation, and its signatures: `target.(parameters) -> result`.
type Row = (&'static str, Implementation, &'static [&'static str]);

/// The conversions, and the functions of the language's standard library.
const STANDARD: [Row; 31] = [
    (
        "size",
        lists::size,
        &[
            "(string) -> int",
            "(bytes) -> int",
            "(list(A)) -> int",
            "(map(A,B)) -> int",
            "string.() -> int",
            "bytes.() -> int",
            "list(A).() -> int",
            "map(A,B).() -> int",
        ],
    ),
    ("dyn", numbers::dynamic, &["(A) -> dyn"]),
    ("type", numbers::type_of, &["(A) -> type"]),
    (
        "bool",
        numbers::to_bool,
        &["(bool) -> bool", "(string) -> bool"],
    ),
    (
        "int",
        numbers::to_int,
        &[
            "(int) -> int",
            "(uint) -> int",
            "(double) -> int",
            "(string) -> int",
            "(timestamp) -> int",
            "(duration) -> int",
        ],
    ),
    (
        "uint",
        numbers::to_uint,
        &[
            "(uint) -> uint",
            "(int) -> uint",
            "(double) -> uint",
            "(string) -> uint",
        ],
    ),
    (
        "double",
        numbers::to_double,
        &[
            "(double) -> double",
            "(int) -> double",
            "(uint) -> double",
            "(string) -> double",
        ],
    ),
    (
        "string",
        numbers::to_text,
        &[
            "(string) -> string",
            "(bool) -> string",
            "(int) -> string",
            "(uint) -> string",
            "(double) -> string",
            "(bytes) -> string",
            "(timestamp) -> string",
            "(duration) -> string",
            "(IP) -> string",
            "(CIDR) -> string",
        ],
    ),
    (
        "bytes",
        numbers::to_bytes,
        &["(bytes) -> bytes", "(string) -> bytes"],
    ),
    (
        "duration",
        time::duration,
        &[
            "(duration) -> duration",
            "(string) -> duration",
            "(int) -> duration",
        ],
    ),
    (
        "timestamp",
        time::timestamp,
        &[
            "(timestamp) -> timestamp",
            "(string) -> timestamp",
            "(int) -> timestamp",
        ],
    ),
    ("contains", strings::contains, &["string.(string) -> bool"]),
    (
        "startsWith",
        strings::starts_with,
        &["string.(string) -> bool"],
    ),
    ("endsWith", strings::ends_with, &["string.(string) -> bool"]),
    (
        "matches",
        strings::matches,
        &["string.(string) -> bool", "(string, string) -> bool"],
    ),
    (
        "getFullYear",
        time::full_year,
        &["timestamp.() -> int", "timestamp.(string) -> int"],
    ),
    (
        "getMonth",
        time::month,
        &["timestamp.() -> int", "timestamp.(string) -> int"],
    ),
    (
        "getDayOfYear",
        time::day_of_year,
        &["timestamp.() -> int", "timestamp.(string) -> int"],
    ),
    (
        "getDayOfMonth",
        time::day_of_month,
        &["timestamp.() -> int", "timestamp.(string) -> int"],
    ),
    (
        "getDate",
        time::date,
        &["timestamp.() -> int", "timestamp.(string) -> int"],
    ),
    (
        "getDayOfWeek",
        time::day_of_week,
        &["timestamp.() -> int", "timestamp.(string) -> int"],
    ),
    (
        "getHours",
        time::hours,
        &[
            "timestamp.() -> int",
            "timestamp.(string) -> int",
            "duration.() -> int",
        ],
    ),
    (
        "getMinutes",
        time::minutes,
        &[
            "timestamp.() -> int",
            "timestamp.(string) -> int",
            "duration.() -> int",
        ],
    ),
    (
        "getSeconds",
        time::seconds,
        &[
            "timestamp.() -> int",
            "timestamp.(string) -> int",
            "duration.() -> int",
        ],
    ),
    (
        "getMilliseconds",
        time::milliseconds,
        &[
            "timestamp.() -> int",
            "timestamp.(string) -> int",
            "duration.() -> int",
        ],
    ),
    ("optional.of", lists::optional_of, &["(A) -> optional(A)"]),
    (
        "optional.ofNonZeroValue",
        lists::optional_of_non_zero,
        &["(A) -> optional(A)"],
    ),
    (
        "optional.none",
        lists::optional_none,
        &["() -> optional(A)"],
    ),
    ("hasValue", lists::has_value, &["optional(A).() -> bool"]),
    ("value", lists::value, &["optional(A).() -> A"]),
    ("orValue", lists::or_value, &["optional(A).(A) -> A"]),
];

/// The functions of strings, lists, sets and addresses that are extensions of the language.
const EXTENSIONS: [Row; 40] = [
    (
        "or",
        lists::or,
        &["optional(A).(optional(A)) -> optional(A)"],
    ),
    ("first", lists::first, &["list(A).() -> optional(A)"]),
    ("last", lists::last, &["list(A).() -> optional(A)"]),
    (
        "optional.unwrap",
        lists::unwrap,
        &["(list(optional(A))) -> list(A)"],
    ),
    (
        "unwrapOpt",
        lists::unwrap,
        &["list(optional(A)).() -> list(A)"],
    ),
    ("charAt", strings::char_at, &["string.(int) -> string"]),
    (
        "indexOf",
        lists::index_of,
        &[
            "string.(string) -> int",
            "string.(string, int) -> int",
            "list(A).(A) -> int",
        ],
    ),
    (
        "lastIndexOf",
        lists::last_index_of,
        &[
            "string.(string) -> int",
            "string.(string, int) -> int",
            "list(A).(A) -> int",
        ],
    ),
    ("lowerAscii", strings::lower_ascii, &["string.() -> string"]),
    ("upperAscii", strings::upper_ascii, &["string.() -> string"]),
    (
        "replace",
        strings::replace,
        &[
            "string.(string, string) -> string",
            "string.(string, string, int) -> string",
        ],
    ),
    (
        "split",
        strings::split,
        &[
            "string.(string) -> list(string)",
            "string.(string, int) -> list(string)",
        ],
    ),
    (
        "substring",
        strings::substring,
        &["string.(int) -> string", "string.(int, int) -> string"],
    ),
    ("trim", strings::trim, &["string.() -> string"]),
    (
        "join",
        strings::join,
        &[
            "list(string).() -> string",
            "list(string).(string) -> string",
        ],
    ),
    ("strings.quote", strings::quote, &["(string) -> string"]),
    ("format", strings::format, &["string.(list(dyn)) -> string"]),
    ("reverse", lists::reverse, &["list(A).() -> list(A)"]),
    ("find", strings::find, &["string.(string) -> string"]),
    (
        "findAll",
        strings::find_all,
        &[
            "string.(string) -> list(string)",
            "string.(string, int) -> list(string)",
        ],
    ),
    (
        "isSorted",
        lists::is_sorted,
        &[
            "list(int).() -> bool",
            "list(uint).() -> bool",
            "list(double).() -> bool",
            "list(bool).() -> bool",
            "list(duration).() -> bool",
            "list(timestamp).() -> bool",
            "list(string).() -> bool",
            "list(bytes).() -> bool",
        ],
    ),
    (
        "sum",
        lists::sum,
        &[
            "list(int).() -> int",
            "list(uint).() -> uint",
            "list(double).() -> double",
            "list(duration).() -> duration",
        ],
    ),
    (
        "max",
        lists::max,
        &[
            "list(int).() -> int",
            "list(uint).() -> uint",
            "list(double).() -> double",
            "list(bool).() -> bool",
            "list(duration).() -> duration",
            "list(timestamp).() -> timestamp",
            "list(string).() -> string",
            "list(bytes).() -> bytes",
        ],
    ),
    (
        "min",
        lists::min,
        &[
            "list(int).() -> int",
            "list(uint).() -> uint",
            "list(double).() -> double",
            "list(bool).() -> bool",
            "list(duration).() -> duration",
            "list(timestamp).() -> timestamp",
            "list(string).() -> string",
            "list(bytes).() -> bytes",
        ],
    ),
    ("slice", lists::slice, &["list(A).(int, int) -> list(A)"]),
    (
        "flatten",
        lists::flatten,
        &[
            "list(list(A)).() -> list(A)",
            "list(dyn).(int) -> list(dyn)",
        ],
    ),
    (
        "sort",
        lists::sort,
        &[
            "list(int).() -> list(int)",
            "list(uint).() -> list(uint)",
            "list(double).() -> list(double)",
            "list(bool).() -> list(bool)",
            "list(duration).() -> list(duration)",
            "list(timestamp).() -> list(timestamp)",
            "list(string).() -> list(string)",
            "list(bytes).() -> list(bytes)",
        ],
    ),
    ("distinct", lists::distinct, &["list(A).() -> list(A)"]),
    ("lists.range", lists::range, &["(int) -> list(int)"]),
    (
        "sets.contains",
        lists::sets_contains,
        &["(list(A), list(A)) -> bool"],
    ),
    (
        "sets.equivalent",
        lists::sets_equivalent,
        &["(list(A), list(A)) -> bool"],
    ),
    (
        "sets.intersects",
        lists::sets_intersects,
        &["(list(A), list(A)) -> bool"],
    ),
    ("url", network::url, &["(string) -> URL"]),
    ("isURL", network::is_url, &["(string) -> bool"]),
    ("getScheme", network::scheme, &["URL.() -> string"]),
    ("getHost", network::host, &["URL.() -> string"]),
    ("getHostname", network::hostname, &["URL.() -> string"]),
    ("getPort", network::port, &["URL.() -> string"]),
    (
        "getEscapedPath",
        network::escaped_path,
        &["URL.() -> string"],
    ),
    (
        "getQuery",
        network::query,
        &["URL.() -> map(string,list(string))"],
    ),
];

/// Kubernetes' own functions: addresses, quantities, versions, formats of names.
const KUBERNETES: [Row; 46] = [
    ("ip", network::ip, &["(string) -> IP", "CIDR.() -> IP"]),
    ("isIP", network::is_ip, &["(string) -> bool"]),
    (
        "ip.isCanonical",
        network::is_canonical,
        &["(string) -> bool"],
    ),
    ("family", network::family, &["IP.() -> int"]),
    ("isUnspecified", network::is_unspecified, &["IP.() -> bool"]),
    ("isLoopback", network::is_loopback, &["IP.() -> bool"]),
    (
        "isLinkLocalMulticast",
        network::is_link_local_multicast,
        &["IP.() -> bool"],
    ),
    (
        "isLinkLocalUnicast",
        network::is_link_local_unicast,
        &["IP.() -> bool"],
    ),
    (
        "isGlobalUnicast",
        network::is_global_unicast,
        &["IP.() -> bool"],
    ),
    ("cidr", network::cidr, &["(string) -> CIDR"]),
    ("isCIDR", network::is_cidr, &["(string) -> bool"]),
    (
        "containsIP",
        network::contains_ip,
        &["CIDR.(string) -> bool", "CIDR.(IP) -> bool"],
    ),
    (
        "containsCIDR",
        network::contains_cidr,
        &["CIDR.(string) -> bool", "CIDR.(CIDR) -> bool"],
    ),
    ("prefixLength", network::prefix_length, &["CIDR.() -> int"]),
    ("masked", network::masked, &["CIDR.() -> CIDR"]),
    ("quantity", versions::quantity, &["(string) -> quantity"]),
    ("isQuantity", versions::is_quantity, &["(string) -> bool"]),
    ("sign", versions::sign, &["(quantity) -> int"]),
    ("isInteger", versions::is_integer, &["quantity.() -> bool"]),
    ("asInteger", versions::as_integer, &["quantity.() -> int"]),
    (
        "asApproximateFloat",
        versions::as_approximate_float,
        &["quantity.() -> double"],
    ),
    (
        "add",
        versions::add,
        &[
            "quantity.(quantity) -> quantity",
            "quantity.(int) -> quantity",
        ],
    ),
    (
        "sub",
        versions::sub,
        &[
            "quantity.(quantity) -> quantity",
            "quantity.(int) -> quantity",
        ],
    ),
    (
        "isGreaterThan",
        versions::is_greater_than,
        &["quantity.(quantity) -> bool", "semver.(semver) -> bool"],
    ),
    (
        "isLessThan",
        versions::is_less_than,
        &["quantity.(quantity) -> bool", "semver.(semver) -> bool"],
    ),
    (
        "compareTo",
        versions::compare_to,
        &["quantity.(quantity) -> int", "semver.(semver) -> int"],
    ),
    (
        "semver",
        versions::semver,
        &["(string) -> semver", "(string, bool) -> semver"],
    ),
    (
        "isSemver",
        versions::is_semver,
        &["(string) -> bool", "(string, bool) -> bool"],
    ),
    ("major", versions::major, &["semver.() -> int"]),
    ("minor", versions::minor, &["semver.() -> int"]),
    ("patch", versions::patch, &["semver.() -> int"]),
    (
        "format.named",
        versions::format_named,
        &["(string) -> optional(format)"],
    ),
    (
        "validate",
        versions::validate,
        &["format.(string) -> optional(list(string))"],
    ),
    (
        "format.dns1123Label",
        versions::dns1123_label,
        &["() -> format"],
    ),
    (
        "format.dns1123Subdomain",
        versions::dns1123_subdomain,
        &["() -> format"],
    ),
    (
        "format.dns1035Label",
        versions::dns1035_label,
        &["() -> format"],
    ),
    (
        "format.qualifiedName",
        versions::qualified_name,
        &["() -> format"],
    ),
    (
        "format.dns1123LabelPrefix",
        versions::dns1123_label_prefix,
        &["() -> format"],
    ),
    (
        "format.dns1123SubdomainPrefix",
        versions::dns1123_subdomain_prefix,
        &["() -> format"],
    ),
    (
        "format.dns1035LabelPrefix",
        versions::dns1035_label_prefix,
        &["() -> format"],
    ),
    (
        "format.labelValue",
        versions::label_value,
        &["() -> format"],
    ),
    ("format.uri", versions::uri, &["() -> format"]),
    ("format.uuid", versions::uuid, &["() -> format"]),
    ("format.byte", versions::byte, &["() -> format"]),
    ("format.date", versions::date, &["() -> format"]),
    ("format.datetime", versions::datetime, &["() -> format"]),
];

/// Functions of values that admission policies have and rules of schemas do not.
pub(crate) const AUTHORIZATION: [&str; 14] = [
    "path",
    "group",
    "serviceAccount",
    "resource",
    "subresource",
    "namespace",
    "name",
    "check",
    "allowed",
    "reason",
    "errored",
    "error",
    "fieldSelector",
    "labelSelector",
];

static FUNCTIONS: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| {
    let rows = STANDARD.iter().chain(&EXTENSIONS).chain(&KUBERNETES);
    rows.map(|(name, run, signatures)| {
        let overloads = signatures.iter().filter_map(|text| signature(text));
        let function = Function {
            name,
            overloads: overloads.collect(),
            run: *run,
        };
        (*name, function)
    })
    .collect()
});

/// The function with this name.
pub(crate) fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name)
}

/// The functions' names with the numbers of their signatures, read and written.
#[cfg(test)]
pub(crate) fn table() -> Vec<(&'static str, usize, usize)> {
    let rows = STANDARD.iter().chain(&EXTENSIONS).chain(&KUBERNETES);
    rows.map(|(name, _, signatures)| {
        let read = function(name).map_or(0, |found| found.overloads.len());
        (*name, read, signatures.len())
    })
    .collect()
}

/// Reads `target.(parameters) -> result`.
fn signature(text: &str) -> Option<Overload> {
    let (from, result) = text.split_once(" -> ")?;
    let open = from.find(".(").map_or(from.find('(')?, |dot| {
        if from.starts_with('(') { 0 } else { dot + 1 }
    });
    let target = from[..open].trim_end_matches('.');
    let inner = from[open..].strip_prefix('(')?.strip_suffix(')')?;
    let mut params = Vec::new();
    if !target.is_empty() {
        params.push(parse_type(target)?);
    }
    for part in split(inner) {
        params.push(parse_type(part)?);
    }
    Some(Overload {
        is_member: !target.is_empty(),
        params,
        result: parse_type(result)?,
        variables: 2,
    })
}

/// Splits at commas outside of brackets.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}

fn parse_type(text: &str) -> Option<Type> {
    let inner = |text: &str| {
        let parts: Option<Vec<Type>> = split(text.strip_suffix(')')?)
            .into_iter()
            .map(parse_type)
            .collect();
        parts
    };
    if let Some(rest) = text.strip_prefix("list(") {
        return Some(Type::List(Arc::new(inner(rest)?.pop()?)));
    }
    if let Some(rest) = text.strip_prefix("optional(") {
        return Some(Type::Optional(Arc::new(inner(rest)?.pop()?)));
    }
    if let Some(rest) = text.strip_prefix("map(") {
        let mut parts = inner(rest)?;
        let values = parts.pop()?;
        return Some(Type::Map(Arc::new(parts.pop()?), Arc::new(values)));
    }
    Some(match text {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "type" => Type::Meta,
        "IP" => Type::Opaque(Opaque::Ip),
        "CIDR" => Type::Opaque(Opaque::Cidr),
        "quantity" => Type::Opaque(Opaque::Quantity),
        "URL" => Type::Opaque(Opaque::Url),
        "semver" => Type::Opaque(Opaque::Semver),
        "format" => Type::Opaque(Opaque::Format),
        "A" => Type::Variable(0),
        "B" => Type::Variable(1),
        _ => return None,
    })
}

/// A signature's type with its variables moved up, so that they are those of one call.
pub(crate) fn moved(found: &Type, by: u32) -> Type {
    let inner = |part: &Arc<Type>| Arc::new(moved(part, by));
    match found {
        Type::Variable(index) => Type::Variable(index + by),
        Type::List(items) => Type::List(inner(items)),
        Type::Optional(value) => Type::Optional(inner(value)),
        Type::Map(keys, values) => Type::Map(inner(keys), inner(values)),
        other => other.clone(),
    }
}
