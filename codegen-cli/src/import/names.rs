//! Rust names of what is imported.

use apiloom_model::names::json_name;

/// Types that a module of a kind names already.
const TAKEN: [&str; 68] = [
    "Action",
    "Admission",
    "AdmissionRequest",
    "ApiError",
    "AsMut",
    "AsRef",
    "Clone",
    "Copy",
    "Debug",
    "Deserialize",
    "DoubleEndedIterator",
    "Drop",
    "Eq",
    "ExactSizeIterator",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "FromIterator",
    "Hash",
    "IntoIterator",
    "Iterator",
    "JsonSchema",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Serialize",
    "Sized",
    "Sync",
    "ToOwned",
    "TryFrom",
    "TryInto",
    "BTreeMap",
    "Box",
    "Builder",
    "Condition",
    "ConditionStatus",
    "ConvertError",
    "ConvertFrom",
    "Duration",
    "Err",
    "FieldError",
    "FieldPath",
    "IntOrString",
    "LabelSelector",
    "Lister",
    "MicroTime",
    "None",
    "ObjectMeta",
    "Ok",
    "Operation",
    "Option",
    "OwnerReference",
    "Quantity",
    "RequestContext",
    "Resource",
    "Result",
    "Some",
    "Strategy",
    "String",
    "Time",
    "ToString",
    "Value",
    "Vec",
    "Default",
    "From",
    "Into",
    "Send",
];

/// Whether a type cannot have this name.
pub(super) fn is_taken(name: &str) -> bool {
    TAKEN.contains(&name) || syn::parse_str::<syn::Ident>(name).is_err()
}

/// The words of a name: at capitals, digits and what is no letter. `clusterIPs` is `cluster`, `IPs`.
fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for (at, &c) in chars.iter().enumerate() {
        if !c.is_ascii_alphanumeric() {
            words.push(std::mem::take(&mut word));
            continue;
        }
        let before = at.checked_sub(1).map(|before| chars[before]);
        let after = chars.get(at + 1);
        let begins = c.is_ascii_uppercase()
            && (before.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
                || before.is_some_and(|c| c.is_ascii_uppercase())
                    && after.is_some_and(char::is_ascii_lowercase)
                    // The plural of an abbreviation: `IPs`.
                    && !(after == Some(&'s') && chars.get(at + 2).is_none_or(|c| !c.is_ascii_lowercase())));
        if begins {
            words.push(std::mem::take(&mut word));
        }
        word.push(c);
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// The Rust name of a field, and the JSON name if it does not follow from it.
pub(super) fn field(json: &str) -> (String, Option<String>) {
    let words = words(json)
        .into_iter()
        .map(|word| word.to_ascii_lowercase());
    let mut name = words.collect::<Vec<_>>().join("_");
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert_str(0, "field_");
    }
    if syn::parse_str::<syn::Ident>(&name).is_err() || name == "gen" {
        name.push('_');
    }
    let json = (json_name(&name) != json).then(|| json.to_owned());
    (name, json)
}

/// The JSON name that follows from the name of a field.
pub(super) fn json_of(field: &str) -> String {
    json_name(field)
}

/// The name in CamelCase: `http-01` is `Http01`, `dnsNames` is `DnsNames`.
pub(super) fn camel(name: &str) -> String {
    words(name)
        .into_iter()
        .map(|word| {
            let mut chars = word.chars();
            let first = chars.next().map(|c| c.to_ascii_uppercase());
            let rest = chars.as_str();
            // Words of capitals alone are as any other: `HTTP` is `Http`.
            let has_lower = rest.contains(|c: char| c.is_ascii_lowercase());
            let rest = if has_lower {
                rest.to_owned()
            } else {
                rest.to_ascii_lowercase()
            };
            first.into_iter().chain(rest.chars()).collect::<String>()
        })
        .collect()
}

/// The name of a variant of an enum.
pub(super) fn variant(value: &str) -> String {
    let name = match value {
        "" => "Empty".to_owned(),
        "*" => "Any".to_owned(),
        _ => camel(value),
    };
    if name.is_empty() {
        let codes = value.chars().map(|c| format!("{:X}", u32::from(c)));
        return format!("U{}", codes.collect::<Vec<_>>().join("U"));
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("V{name}");
    }
    if name == "Self" {
        return "Self_".to_owned();
    }
    name
}

/// The name of an item of a list with this name: `keystores` has a `keystore`.
pub(super) fn singular(name: &str) -> String {
    for (plural, singular) in [
        ("ies", "y"),
        ("sses", "ss"),
        ("xes", "x"),
        ("ches", "ch"),
        ("shes", "sh"),
    ] {
        if let Some(stem) = name.strip_suffix(plural).filter(|stem| stem.len() > 1) {
            return format!("{stem}{singular}");
        }
    }
    let stem = name.strip_suffix('s').filter(|stem| stem.len() > 2);
    match stem {
        Some(stem) if !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
        _ => name.to_owned(),
    }
}

/// Modules that a package cannot have: the files `lib.rs`, `main.rs` and those in `bin` are what cargo builds, the others are
/// crates or the generated files.
const NO_MODULES: [&str; 9] = [
    "alloc",
    "apiloom",
    "bin",
    "core",
    "generated",
    "lib",
    "main",
    "std",
    "test",
];

/// A module's name of a group's or a kind's name.
pub(super) fn module(name: &str) -> String {
    let (name, _) = field(name);
    if NO_MODULES.contains(&name.as_str()) {
        return format!("{name}_");
    }
    name
}

/// Whether a version can be the name of a module as it is, which the name of its `apiVersion` follows from.
pub(super) fn is_module(version: &str) -> bool {
    !NO_MODULES.contains(&version)
        && version != "gen"
        && syn::parse_str::<syn::Ident>(version).is_ok()
}

/// A name that the list does not have yet, made of this one.
pub(super) fn free(mut name: String, known: &[String]) -> String {
    let stem = name.clone();
    let mut number = 2;
    while known.contains(&name) {
        name = format!("{stem}{number}");
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_snake_case() {
        let check = |json: &str, rust: &str, said: bool| {
            let expected = (rust.to_owned(), said.then(|| json.to_owned()));
            assert_eq!(field(json), expected, "{json}");
        };
        check("dnsNames", "dns_names", false);
        check("type", "type_", false);
        check("gen", "gen_", false);
        check("clusterIPs", "cluster_ips", true);
        check("podIP", "pod_ip", true);
        check("isCA", "is_ca", true);
        check("http01", "http01", false);
        check("x-y", "x_y", true);
        check("Kind", "kind", true);
        check("1st", "field_1st", true);
        check("$", "field_", true);
        check("JSONPath", "json_path", true);
    }

    #[test]
    fn types_and_variants_are_camel_case() {
        let check = |from: &str, to: &str| assert_eq!(variant(from), to, "{from}");
        check("CombinedPEM", "CombinedPem");
        check("HTTP", "Http");
        check("rsa-2048", "Rsa2048");
        check("ES256", "Es256");
        check("", "Empty");
        check("*", "Any");
        check("1.2", "V12");
        check("==", "U3DU3D");
        check("Self", "Self_");
    }

    #[test]
    fn items_have_the_singular() {
        for (plural, one) in [
            ("keystores", "keystore"),
            ("policies", "policy"),
            ("addresses", "address"),
            ("status", "status"),
            ("dns", "dns"),
            ("class", "class"),
            ("boxes", "box"),
            ("matches", "match"),
        ] {
            assert_eq!(singular(plural), one);
        }
    }
}
