//! Definitions that were written to become something else in the files of a package: what they say stays text.

use proptest::prelude::*;
use serde_json::{Value, json};
use syn::visit::Visit;

use super::definition;
use crate::import::imported_kind;
use crate::markdown::tests::{dangers, hostile};

/// A definition that has this text wherever Kubernetes takes any text.
fn with_text(text: &str) -> Value {
    let mut kind = definition(json!({
        "plain": { "type": "string", "description": text, "default": text, "title": text, "example": text },
        "choice": { "type": "string", "description": text, "enum": ["a", text] },
        "rule": { "type": "string", "x-kubernetes-validations": [
            { "rule": format!("self != {}", Value::from(text)), "message": text }] },
        "other": { "type": "string", "format": text },
        "below": { "type": "array", "items": { "type": "object", "description": text, "properties": {
            "name": { "type": "string", "description": text } } } },
        "any": { "x-kubernetes-preserve-unknown-fields": true, "default": { "a": text }, "description": text },
        text: { "type": "integer", "description": text },
    }));
    let version = &mut kind["spec"]["versions"][0];
    version["deprecated"] = true.into();
    version["deprecationWarning"] = text.into();
    version["schema"]["openAPIV3Schema"]["description"] = text.into();
    version["additionalPrinterColumns"] = json!([
        { "name": text, "type": "string", "jsonPath": ".spec.plain", "description": text, "format": text },
        { "name": "b", "type": "string", "jsonPath": text },
        { "name": "c", "type": text, "jsonPath": ".spec.plain" },
    ]);
    version["selectableFields"] = json!([{ "jsonPath": text }]);
    kind
}

/// What a module of an import may have.
#[derive(Default)]
struct Items {
    others: Vec<String>,
    docs: Vec<String>,
}

impl<'a> Visit<'a> for Items {
    fn visit_file(&mut self, file: &'a syn::File) {
        for item in &file.items {
            if !matches!(
                item,
                syn::Item::Struct(_) | syn::Item::Enum(_) | syn::Item::Use(_)
            ) {
                self.others.push(format!("{item:?}"));
            }
        }
        syn::visit::visit_file(self, file);
    }

    fn visit_attribute(&mut self, attribute: &'a syn::Attribute) {
        let name = attribute
            .path()
            .segments
            .last()
            .map(|segment| segment.ident.to_string());
        match name.as_deref() {
            Some("doc") => {
                let syn::Meta::NameValue(doc) = &attribute.meta else {
                    return;
                };
                let syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(line),
                    ..
                }) = &doc.value
                else {
                    return;
                };
                // rustdoc takes away the space that all lines begin with.
                let line = line.value();
                self.docs
                    .push(line.strip_prefix(' ').unwrap_or(&line).to_owned());
            }
            Some("api" | "resource") => self.docs.push(String::new()),
            other => self.others.push(format!("{other:?}")),
        }
    }

    fn visit_expr(&mut self, expr: &'a syn::Expr) {
        self.others.push(format!("{expr:?}"));
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        self.docs.push(String::new());
        syn::visit::visit_field(self, field);
        self.docs.push(String::new());
    }
}

/// Whether rustc takes a character in a literal or a comment.
fn is_taken(c: char) -> bool {
    !matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\r' | '\0')
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_global_rejects: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_definition_says_stays_text(text in hostile()) {
        // Some are refused, whose text is for a terminal; most are not.
        let imported = imported_kind(&with_text(&text));
        prop_assume!(imported.is_ok(), "{:?}", imported);
        for (_, code) in &imported.unwrap_or_else(|error| panic!("{error}")).modules {
            prop_assert!(code.chars().all(is_taken), "{}", code);
            let file = syn::parse_file(code).map_err(|error| TestCaseError::fail(format!("{error}: {code}")))?;
            let mut items = Items::default();
            items.visit_file(&file);
            prop_assert_eq!(items.others, Vec::<String>::new(), "{}", code);
            let found = dangers(&items.docs.join("\n"));
            prop_assert_eq!(found, Vec::<String>::new(), "{}", code);
        }
    }
}

#[test]
fn most_hostile_definitions_are_imported() {
    for text in [
        "```\npanic!();\n```",
        "\tpanic!();",
        "\"#)] fn main() {}",
        "*/ pub fn a() {}",
        "[`Vec`]",
        "\u{202E}",
        "<script>",
    ] {
        if let Err(error) = imported_kind(&with_text(text)) {
            panic!("{text:?}: {error}");
        }
    }
}
