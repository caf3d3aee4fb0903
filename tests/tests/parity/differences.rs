//! How a custom resource answers otherwise than the same kind compiled into the server, as the contract of Kubernetes says.

/// A difference, and why it is one.
pub(crate) struct Difference {
    pub(crate) name: &'static str,
    #[expect(dead_code, reason = "for those who read")]
    pub(crate) why: &'static str,
}

pub(crate) const KEY_ORDER: &str = "key order";
pub(crate) const LIST_ITEMS: &str = "list items";
pub(crate) const METADATA_ORDER: &str = "metadata alone";
pub(crate) const COLUMN_DESCRIPTIONS: &str = "column descriptions";

const fn difference(name: &'static str, why: &'static str) -> Difference {
    Difference { name, why }
}

/// The first four are those of all answers: objects of the compiled kind are given the form of custom resources before the
/// comparison. The others belong to requests that name them.
pub(crate) const DIFFERENCES: &[Difference] = &[
    difference(
        KEY_ORDER,
        "an object of a Rust type has the order of its fields; a custom resource is a map, whose keys are sorted",
    ),
    difference(
        LIST_ITEMS,
        "items of lists of custom resources have kind and apiVersion, and the metadata of their lists always has `continue`",
    ),
    difference(
        METADATA_ORDER,
        "PartialObjectMetadata of a custom resource has the bytes of its metadata, which are sorted; kube-apiserver makes an ObjectMeta \
         of them, in its order",
    ),
    difference(
        COLUMN_DESCRIPTIONS,
        "a column of a definition without a description is described by its path",
    ),
    difference(
        "absent type",
        "the body of a custom resource must have kind and apiVersion; those of Rust types follow from the path",
    ),
    difference(
        "other type",
        "another kind or version in a body is no conversion that is looked for, but a wrong value",
    ),
    difference(
        "wrong type",
        "values of wrong types are errors of the decoder for a Rust type (400), of the schema for a custom resource (422)",
    ),
    difference(
        "texts of the schema",
        "a definition's schema is validated by kube-openapi: other texts, fields in the order of their names, keys of maps behind a dot",
    ),
    difference(
        "rules not checked",
        "errors that keep the rules of a definition from being evaluated are followed by one that says so",
    ),
    difference(
        "rules in CEL",
        "what a Rust type declares beyond keywords of schemas is a rule in CEL in its definition, with the text of the rule",
    ),
    difference(
        "computed default",
        "a default that code computes is not in the definition, which says so at its head",
    ),
    difference(
        "empty values",
        "a Rust type leaves out what is empty and reads null as empty; a custom resource keeps empty lists and refuses null in them",
    ),
    difference(
        "Protobuf",
        "custom resources have no form in Protobuf; their Scale has",
    ),
    difference(
        "accepted types",
        "the router in front of Rust types compares `Accept` with the types of the server; custom resources have no such router",
    ),
    difference(
        "types of patches",
        "all other types of patches are refused with those that are accepted; the router in front of Rust types names none",
    ),
    difference(
        "methods",
        "requests for custom resources go by the verb that was authorized, not by a route of the method",
    ),
    difference(
        "unknown paths",
        "unknown paths of a group of definitions alone are no paths of the API (404 as text)",
    ),
    difference(
        "unknown subresources",
        "the 404 for an unknown subresource names the object",
    ),
    difference(
        "unconditional updates",
        "updates of custom resources need a resourceVersion",
    ),
    difference(
        "finalizers",
        "a finalizer without a domain is a warning for a custom resource, an error for others",
    ),
    difference(
        "versions",
        "a definition serves the stored version alone if others have other schemas",
    ),
    difference(
        "verbs",
        "discovery lists the verbs of custom resources in another order",
    ),
    difference(
        "default columns",
        "the default columns are Name and Age for a custom resource, Name and Created At for others",
    ),
    difference(
        "lists as YAML",
        "the difference of list items, in a format that the test does not rewrite",
    ),
    difference(
        "order of unknown fields",
        "of custom resources duplicate fields come first, then the unknown ones of metadata, then the others, sorted",
    ),
    difference(
        "text of wrong metadata",
        "the metadata of a custom resource is decoded by itself, so that the path does not begin with it",
    ),
    difference(
        "causes of metadata",
        "an update of a custom resource validates the metadata twice, and tells what is wrong with it as often",
    ),
    difference(
        "absent key of an item",
        "a Go type gives an item the zero value of its key, a definition gives none",
    ),
    difference(
        "type of the object",
        "custom resources have one type in Go, which the text names",
    ),
];
