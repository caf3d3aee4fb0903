//! `allOf`, `oneOf`, `anyOf` and `not` of a schema, and the further keywords that a type has as JSON.

use serde_json::{Map, Value};

use super::build::{Builder, SchemaOrigin, object_meta};
use super::combine;
use super::keywords::list;
use super::node::{Choice, Node};
use super::root;

/// The keyword for further keywords of a type, as text with their JSON.
const FURTHER: &str = "x-apiloom-schema";

impl<'a> Builder<'a> {
    /// Builds the schemas that the value must match too.
    pub(super) fn junctors(
        &mut self,
        node: &mut Node,
        keywords: &'a Map<String, Value>,
        path: &str,
    ) {
        for part in list(keywords, "allOf") {
            let part = self.part(part, path);
            // A node has one pattern; a part with another is a choice of one.
            if self.is_document() && has_other_rules(node, &part) {
                node.choices.push(Choice {
                    exactly_one: false,
                    branches: vec![part],
                });
            } else {
                combine::both(&mut self.problems, node, part, path);
            }
        }
        if !node.int_or_string {
            self.choice(node, keywords, "oneOf", path);
            self.choice(node, keywords, "anyOf", path);
        }
        if let Some(not) = keywords.get("not") {
            node.not = Some(Box::new(self.part(not, path)));
        }
    }

    /// Builds a schema inside of a junctor.
    fn part(&mut self, schema: &'a Value, path: &str) -> Node {
        self.junctors += 1;
        let node = self.node(schema, path);
        self.junctors -= 1;
        node
    }

    /// Adds the keywords that `#[api(schema = "..")]` has as JSON. They have the syntax of a CRD: branches judge what the
    /// type describes.
    pub(super) fn further(&mut self, node: &mut Node, keywords: &Map<String, Value>, path: &str) {
        let Some(Value::String(text)) = keywords.get(FURTHER) else {
            return;
        };
        let further = match serde_json::from_str(text) {
            Ok(Value::Object(further)) => further,
            Ok(_) => return self.error(path, format_args!("`schema` is no JSON object: {text}")),
            Err(error) => {
                return self.error(path, format_args!("`schema` is not JSON: {error}: {text}"));
            }
        };
        let root = Value::Null;
        let mut builder = Builder::new(&root, SchemaOrigin::Document);
        let own = builder.own(&further, path);
        let is_object = own.embedded_resource && !node.embedded_resource;
        let declared = own.properties.clone();
        combine::both(&mut builder.problems, node, own, path);
        builder.junctors(node, &further, path);
        if is_object {
            root::add_type_and_metadata(node, object_meta());
            // What it says of them holds too.
            for property in declared {
                let of_every_object = node.property_mut(&property.name);
                if let Some(own) = of_every_object.filter(|own| own.name != "metadata") {
                    *own = property;
                }
            }
        }
        self.problems.lines.extend(builder.problems.lines);
    }
}

/// Whether both have a rule of which a node has room for one.
fn has_other_rules(node: &Node, part: &Node) -> bool {
    fn differ<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
        a.zip(b).is_some_and(|(a, b)| a != b)
    }
    let (own, other) = (&node.rules, &part.rules);
    differ(node.format.as_ref(), part.format.as_ref())
        || differ(own.pattern.as_ref(), other.pattern.as_ref())
        || differ(own.multiple_of.as_ref(), other.multiple_of.as_ref())
}
