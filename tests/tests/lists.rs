//! `print-chain` and `print-routes` of servers as processes: their exact text, and that nothing is opened for it.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use apiloom_tests::{Server, build};
use serde_json::{Value, json};

/// Runs a server in a folder until it ends by itself; returns what it printed.
#[track_caller]
fn prints(binary: &str, folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(build(binary));
    let output = command.current_dir(folder).args(args).output().unwrap();
    let [printed, told] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!((output.status.code(), &*told), (Some(0), ""), "{printed}");
    printed
}

#[test]
fn the_chain_of_a_server_is_one_line_a_filter() {
    let folder = tempfile::tempdir().unwrap();
    let printed = prints("hello-server", folder.path(), &["print-chain"]);
    insta::assert_snapshot!(printed);
    let json = prints(
        "hello-server",
        folder.path(),
        &["print-chain", "-o", "json"],
    );
    let document: Value = serde_json::from_str(&json).unwrap();
    let filters = document["filters"].as_array().unwrap();
    assert_eq!(filters.len(), printed.lines().count() - 1);
    for (filter, line) in filters.iter().zip(printed.lines().skip(1)) {
        let cells = ["name", "part", "meaning"].map(|key| filter[key].as_str().unwrap());
        assert_eq!(
            line.split("   ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect::<Vec<_>>(),
            cells
        );
    }
}

#[test]
fn the_routes_of_a_server_are_one_line_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let printed = prints("hello-server", folder.path(), &["print-routes"]);
    insta::assert_snapshot!(printed);
    let json = prints(
        "hello-server",
        folder.path(),
        &["print-routes", "--output=json"],
    );
    let document: Value = serde_json::from_str(&json).unwrap();
    let routes = document["routes"].as_array().unwrap();
    assert_eq!(routes.len(), printed.lines().count() - 1);
    let status = routes
        .iter()
        .find(|route| route["subresource"] == "status" && route["kind"] == "Greeting");
    let expected = json!({
        "path": "/apis/hello.example.com/v1/namespaces/{namespace}/greetings/{name}/status",
        "verbs": ["get", "patch", "update"],
        "source": "resources",
        "part": "program",
        "group": "hello.example.com",
        "version": "v1",
        "kind": "Greeting",
        "resource": "greetings",
        "subresource": "status",
    });
    assert_eq!(status, Some(&expected));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The flags of a server that runs are those of its lists: neither its store nor its port is in the way, and etcd need not run.
#[test]
fn lists_open_neither_a_store_nor_a_port() {
    let server = Server::start(&[]);
    let port = server.url().rsplit_once(':').unwrap().1;
    let folder = server.data_dir();
    let args = |backend: &str| {
        let data = folder.to_str().unwrap();
        let args = ["print-routes", "--data-dir", data, "--secure-port", port];
        let flags = backend.split_whitespace();
        prints(
            "wardle-server",
            folder,
            &args.into_iter().chain(flags).collect::<Vec<_>>(),
        )
    };
    let routes = args("");
    assert!(routes.contains("/healthz/storage "), "{routes}");
    assert!(
        routes.contains("/apis/wardle.example.com/v1alpha1/fischers/{name} "),
        "{routes}"
    );
    let without = args("--runtime-config=wardle.example.com/v1alpha1=false");
    assert!(!without.contains("v1alpha1"), "{without}");
    if cfg!(feature = "etcd") {
        let etcd = args("--storage-backend=etcd --etcd-servers=http://127.0.0.1:1");
        assert!(
            etcd.contains("/healthz/etcd ") && !etcd.contains("/storage "),
            "{etcd}"
        );
    }
}

#[test]
fn kinds_of_definitions_to_install_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Cluster",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    fs::write(folder.path().join("foo.json"), definition.to_string()).unwrap();
    let args = ["print-routes", "--crds", "foo.json"];
    let printed = prints("apiloom-serve", folder.path(), &args);
    let line = printed
        .lines()
        .find(|line| line.contains("/apis/ex.io/v1/foos/{name} "));
    let cells: Vec<&str> = line.unwrap().split_whitespace().collect();
    let expected = [
        "resources",
        "host",
        "/apis/ex.io/v1/foos/{name}",
        "delete,get,patch,update",
    ];
    assert_eq!(cells, expected);
}

#[test]
fn wrong_arguments_are_told_and_end_with_1() {
    let folder = tempfile::tempdir().unwrap();
    for (binary, args, expected) in [
        (
            "hello-server",
            &["print-routes", "-o", "xml"][..],
            "error: invalid value 'xml' for '--output <FORMAT>': it must be text or json\n",
        ),
        (
            "hello-server",
            &["print-chain", "all"],
            "error: unexpected argument 'all' found\n",
        ),
        (
            "hello-server",
            &["--secure-port=0", "print-chain"],
            "error: unexpected argument 'print-chain' found\n",
        ),
        (
            "apiloom-serve",
            &["print-routes", "--crds", "nothing"],
            "error: cannot read nothing: No such file or directory (os error 2)\n",
        ),
    ] {
        let mut command = Command::new(build(binary));
        let output = command
            .current_dir(folder.path())
            .args(args)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
        assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
    }
}
