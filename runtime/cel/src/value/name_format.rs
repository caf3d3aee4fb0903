//! The named formats of texts.

use apiloom_schema::has_format;
use apiloom_schema::names;

use super::go_url::Url;

/// A format of texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) problems: fn(&str) -> Vec<String>,
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A name prefix as a name: a dash at its end is followed by more. Kubernetes replaces the byte before the dash too.
fn completed(prefix: &str) -> String {
    let before = prefix.strip_suffix('-').unwrap_or_default();
    match before.char_indices().next_back() {
        Some((last, _)) => format!("{}a", &before[..last]),
        None => prefix.to_owned(),
    }
}

fn one(text: &str, is_valid: bool) -> Vec<String> {
    if is_valid {
        Vec::new()
    } else {
        vec![text.to_owned()]
    }
}

pub(crate) const FORMATS: [Format; 13] = [
    Format {
        name: "dns1123Label",
        problems: names::dns_label,
    },
    Format {
        name: "dns1123Subdomain",
        problems: names::dns_subdomain,
    },
    Format {
        name: "dns1035Label",
        problems: names::dns1035_label,
    },
    Format {
        name: "qualifiedName",
        problems: names::qualified_name,
    },
    Format {
        name: "dns1123LabelPrefix",
        problems: |text| names::dns_label(&completed(text)),
    },
    Format {
        name: "dns1123SubdomainPrefix",
        problems: |text| names::dns_subdomain(&completed(text)),
    },
    Format {
        name: "dns1035LabelPrefix",
        problems: |text| names::dns1035_label(&completed(text)),
    },
    Format {
        name: "labelValue",
        problems: names::label_value,
    },
    Format {
        name: "uri",
        problems: |text| Url::parse_request(text).err().into_iter().collect(),
    },
    Format {
        name: "uuid",
        problems: |text| one("does not match the UUID format", has_format("uuid", text)),
    },
    Format {
        name: "byte",
        problems: |text| one("invalid base64", has_format("byte", text)),
    },
    Format {
        name: "date",
        problems: |text| one("invalid date", has_format("date", text)),
    },
    Format {
        name: "datetime",
        problems: |text| one("invalid datetime", has_format("datetime", text)),
    },
];
