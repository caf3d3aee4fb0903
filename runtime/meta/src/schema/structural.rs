//! What kube-apiserver takes as the schema of a CustomResourceDefinition.

/// The formats of strings that kube-apiserver checks, without dashes, as it compares them.
const STRING_FORMATS: [&str; 27] = [
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
    "quantity",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether kube-apiserver checks a format for values of a type. It ignores other formats with a warning. A schema without
/// a type is judged as one of strings.
pub fn is_known_format(json_type: Option<&str>, format: &str) -> bool {
    match json_type {
        None | Some("string") => STRING_FORMATS.contains(&format.replace('-', "").as_str()),
        Some("integer") => matches!(format, "int32" | "int64"),
        Some("number") => matches!(format, "float" | "double"),
        Some(_) => false,
    }
}
