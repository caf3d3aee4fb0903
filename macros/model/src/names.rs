//! Derives names from names: JSON names, plurals. In one place, so that server, client and manifests agree.

/// Whether a name can be written as an identifier, in each edition. syn does not know `gen`, a keyword since edition 2024.
pub fn is_identifier(name: &str) -> bool {
    name != "gen" && syn::parse_str::<syn::Ident>(name).is_ok()
}

/// The identifier for a name: a keyword is written raw, or with an underscore if it has no raw form.
pub fn identifier(name: &str) -> String {
    match name {
        "crate" | "self" | "super" | "Self" => format!("{name}_"),
        _ if is_identifier(name) => name.to_owned(),
        _ => format!("r#{name}"),
    }
}

/// The JSON name of a Rust field: `creation_timestamp` is `creationTimestamp`, as serde's `camelCase` has it.
pub fn json_name(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut upper = false;
    for c in field.chars() {
        match c {
            '_' => upper = !out.is_empty(),
            c if upper => {
                out.push(c.to_ascii_uppercase());
                upper = false;
            }
            c if out.is_empty() => out.push(c.to_ascii_lowercase()),
            c => out.push(c),
        }
    }
    out
}

/// Kinds with an irregular plural, by their last CamelCase word.
const IRREGULAR: &[(&str, &str)] = &[
    ("child", "children"),
    ("data", "data"),
    ("endpoints", "endpoints"),
    ("foot", "feet"),
    ("half", "halves"),
    ("knife", "knives"),
    ("leaf", "leaves"),
    ("life", "lives"),
    ("man", "men"),
    ("metadata", "metadata"),
    ("metrics", "metrics"),
    ("mouse", "mice"),
    ("person", "people"),
    ("self", "selves"),
    ("series", "series"),
    ("shelf", "shelves"),
    ("species", "species"),
    ("woman", "women"),
];

/// The resource of a kind: `NetworkPolicy` is `networkpolicies`, `Ingress` is `ingresses`, `Gateway` is `gateways`.
pub fn plural(kind: &str) -> String {
    let start = kind.rfind(|c: char| c.is_ascii_uppercase()).unwrap_or(0);
    let (head, last) = (
        kind[..start].to_ascii_lowercase(),
        kind[start..].to_ascii_lowercase(),
    );
    if let Some((_, plural)) = IRREGULAR.iter().find(|(singular, _)| *singular == last) {
        return format!("{head}{plural}");
    }
    format!("{head}{}", regular_plural(&last))
}

fn regular_plural(word: &str) -> String {
    let stem = &word[..word.len().saturating_sub(1)];
    match word.as_bytes() {
        [.., b'a' | b'e' | b'i' | b'o' | b'u', b'y'] => format!("{word}s"),
        [_, .., b'y'] => format!("{stem}ies"),
        [.., b's' | b'x' | b'z'] | [.., b'c' | b's', b'h'] => format!("{word}es"),
        _ => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_raw_or_have_an_underscore() {
        let check = |name: &str, expected: &str| assert_eq!(identifier(name), expected);
        check("flunders", "flunders");
        for name in ["async", "box", "dyn", "gen", "macro", "try", "type"] {
            check(name, &format!("r#{name}"));
            assert!(!is_identifier(name));
        }
        for name in ["crate", "self", "Self", "super"] {
            check(name, &format!("{name}_"));
            assert!(!is_identifier(name));
        }
    }

    #[test]
    fn json_names_are_camel_case() {
        let check = |rust: &str, json: &str| assert_eq!(json_name(rust), json, "{rust}");
        check("reference", "reference");
        check("reference_type", "referenceType");
        check("type_", "type");
        check("_private", "private");
        check("a_b_c", "aBC");
        check("ipv4_address", "ipv4Address");
    }

    #[test]
    fn plurals_are_those_of_kubernetes() {
        let check = |kind: &str, resource: &str| assert_eq!(plural(kind), resource, "{kind}");
        for (kind, resource) in [
            ("Pod", "pods"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Endpoints", "endpoints"),
            ("StorageClass", "storageclasses"),
            ("ComponentStatus", "componentstatuses"),
            ("APIService", "apiservices"),
            ("Fischer", "fischers"),
            ("Mesh", "meshes"),
            ("Proxy", "proxies"),
            ("Box", "boxes"),
            ("BookShelf", "bookshelves"),
            ("Person", "people"),
            ("Y", "ys"),
        ] {
            check(kind, resource);
        }
    }
}
