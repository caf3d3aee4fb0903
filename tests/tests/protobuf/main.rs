//! Protobuf bytes against an independent reading of them: by the generated `.proto` files, with another implementation.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "test types")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod coder;
mod kinds;
mod reference;
mod served;
#[cfg(feature = "etcd")]
mod stored;

use std::collections::BTreeMap;

use apiloom::apis::{apiextensions, apiregistration, coordination, core, events};
use apiloom::meta::kind::{Resource, ResourceDef};
use apiloom_cli::generate::proto_file;
use apiloom_meta::kind::protobuf::OBJECT_META;
use apiloom_meta::kind::{ProtoFile, ProtoFiles};
use apiloom_tests::repository;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use serde_json::Value;

/// Compiles files. A file of Kubernetes has the messages that any of the packages needs.
fn compile(files: &BTreeMap<String, ProtoFile>) -> DescriptorPool {
    let dir = tempfile::tempdir().unwrap();
    for (path, file) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, proto_file(file, "header").unwrap()).unwrap();
    }
    let compiled = protox::compile(files.keys(), [dir.path()]);
    let compiled = compiled.unwrap_or_else(|error| panic!("{error:?}"));
    DescriptorPool::from_file_descriptor_set(compiled).unwrap()
}

/// The message of a kind, compiled from its `.proto` file.
fn message_of(def: &ResourceDef) -> MessageDescriptor {
    let mut files = ProtoFiles::default();
    files.add(def, &Value::Null);
    let files = files.finish().unwrap();
    let pool = compile(&files);
    let own = files.keys().find(|path| !path.contains('/')).unwrap();
    let name = format!("{}.{}", files[own].package, def.kind);
    pool.get_message_by_name(&name).unwrap()
}

#[test]
fn the_files_of_wardle_are_compiled() {
    let dir = repository().join("examples/wardle/generated/proto");
    for version in ["v1alpha1", "v1beta1"] {
        let file = format!("wardle.example.com_{version}.proto");
        let compiled = protox::compile([file], [&dir]).unwrap();
        let pool = DescriptorPool::from_file_descriptor_set(compiled).unwrap();
        let name = format!("com.example.wardle.{version}.FlunderList");
        let list = pool.get_message_by_name(&name).unwrap();
        assert!(
            list.get_field_by_name("items")
                .is_some_and(|items| items.is_list())
        );
    }
}

#[test]
fn messages_of_kubernetes_are_compiled_together() {
    // One pool with all kinds of one package of Kubernetes.
    let mut files = ProtoFiles::default();
    for def in [
        core::v1::Namespace::definition(),
        core::v1::ConfigMap::definition(),
        core::v1::Secret::definition(),
        core::v1::ServiceAccount::definition(),
        core::v1::Event::definition(),
        events::v1::Event::definition(),
        coordination::v1::Lease::definition(),
        apiextensions::v1::CustomResourceDefinition::definition(),
        apiregistration::v1::APIService::definition(),
    ] {
        files.add(&def, &Value::Null);
    }
    let files = files.finish().unwrap();
    let pool = compile(&files);
    let meta = "k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let meta = pool.get_message_by_name(meta).unwrap();
    assert_eq!(meta.fields().count(), OBJECT_META.fields.len());
    // The numbers are those of Kubernetes: a change of one breaks every client.
    let texts = files
        .iter()
        .map(|(path, file)| String::from_utf8(proto_file(file, path).unwrap()).unwrap());
    insta::assert_snapshot!(texts.collect::<Vec<_>>().join("\n"));
}
