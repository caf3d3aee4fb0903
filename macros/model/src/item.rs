//! What is read from an item beside our own keys: attributes, doc comments, derives.

use syn::Attribute;

/// Whether the attribute is `#[NAME]` or `#[apiloom::NAME]`.
pub fn is_attribute(attribute: &Attribute, name: &str) -> bool {
    let segments: Vec<String> = attribute
        .path()
        .segments
        .iter()
        .map(|s| s.ident.to_string())
        .collect();
    match segments.as_slice() {
        [only] => only == name,
        [first, second] => first == "apiloom" && second == name,
        _ => false,
    }
}
