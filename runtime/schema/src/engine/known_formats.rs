//! The formats that schemas of custom resources may have.

/// String formats that kube-apiserver validates, without dashes, which it ignores.
const STRING_FORMATS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether kube-apiserver validates a format for values of a type. Other formats are ignored with a warning. A schema
/// without a type counts as one of strings.
pub fn is_known_format(json_type: Option<&str>, format: &str) -> bool {
    match json_type {
        None | Some("string") => STRING_FORMATS.contains(&format.replace('-', "").as_str()),
        Some("integer") => matches!(format, "int32" | "int64"),
        Some("number") => matches!(format, "float" | "double"),
        Some(_) => false,
    }
}
