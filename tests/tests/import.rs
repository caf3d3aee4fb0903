//! `apiloom import`: kinds of other projects as packages. The definition that a package's types give is equivalent to the
//! imported one.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use apiloom_cli::{definition_differences, imported_kind, imported_kinds, openapi_differences};
use apiloom_tests::{Kubectl, Server, build, corpus, repository};
use serde_json::{Value, json};

/// What the imports of the corpus lose.
const TABLE: &str = "tests/corpus/import.txt";

/// The documents of a file of YAML.
fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    // A definition of the corpus has a key twice. The last one counts, as it does for kubectl.
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
    };
    let documents = serde_saphyr::from_multiple_with_options(&text, options);
    documents.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The definitions that the packages of this repository have.
fn of_packages() -> Vec<PathBuf> {
    let folders = ["examples/hello", "examples/wardle", "tests/ports"];
    let mut found = Vec::new();
    for folder in folders {
        let folder = repository().join(folder);
        let packages = [vec![folder.clone()], files(&folder)].concat();
        for package in packages {
            let crds = package.join("generated/crds");
            if crds.is_dir() {
                found.extend(files(&crds));
            }
        }
    }
    found
}

#[test]
fn definitions_of_packages_are_imported_without_loss() {
    let files = of_packages();
    assert!(files.len() > 8, "{files:?}");
    for file in files {
        for document in documents(&file) {
            let imported = imported_kind(&document).unwrap_or_else(|error| panic!("{error}"));
            let lost = imported.lost.iter();
            let lost: Vec<_> = lost
                .filter(|line| !line.contains(": conversion of "))
                .collect();
            assert!(lost.is_empty(), "{}: {lost:#?}", file.display());
        }
    }
}

/// The documents of OpenAPI v3 of a package, one for each version.
fn openapi_of(package: &str) -> Vec<Value> {
    let folder = repository().join(package).join("generated/openapi/v3");
    let documents = files(&folder).into_iter();
    documents
        .map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
        .collect()
}

/// What the documents of OpenAPI of a package do not tell, or what only the code of a user can say.
fn is_told_by_no_document(line: &str) -> bool {
    [
        ": conversion of ",
        ": is taken to be the stored version",
        ": the paths of the subresource scale",
        "; write subresource(..) or connect(..)",
    ]
    .iter()
    .any(|part| line.contains(part))
}

#[test]
fn openapi_documents_of_packages_are_imported_without_loss() {
    for (package, expected) in [
        ("examples/hello", 1),
        ("examples/wardle", 2),
        ("tests/ports/balancer", 1),
        ("tests/ports/certificate", 1),
        ("tests/ports/core", 4),
        ("tests/ports/cronjob", 1),
        ("tests/ports/machine", 1),
        ("tests/ports/route", 1),
    ] {
        let imported = imported_kinds(&openapi_of(package));
        let imported = imported.unwrap_or_else(|error| panic!("{package}: {error}"));
        assert_eq!(imported.len(), expected, "{package}");
        let lost = imported.iter().flat_map(|kind| &kind.lost);
        let lost: Vec<_> = lost.filter(|line| !is_told_by_no_document(line)).collect();
        assert!(lost.is_empty(), "{package}: {lost:#?}");
    }
}

/// The folders of the projects of the corpus.
fn corpus_projects() -> Vec<PathBuf> {
    let folders = corpus::folders();
    let found = folders.iter().flat_map(|root| files(root));
    found.filter(|path| path.is_dir()).collect()
}

/// What an import loses of each definition of the corpus, with the number of definitions.
fn losses() -> (usize, BTreeMap<String, Vec<String>>) {
    let mut losses = BTreeMap::new();
    let mut count = 0;
    for (folder, file) in corpus_projects()
        .iter()
        .flat_map(|folder| files(folder).into_iter().map(move |file| (folder, file)))
    {
        let root = folder.parent().unwrap();
        let name = file.strip_prefix(root).unwrap().with_extension("");
        for document in documents(&file) {
            count += 1;
            let lines = match imported_kind(&document) {
                Ok(imported) => imported.lost,
                Err(error) => vec![format!("error: {error}")],
            };
            if !lines.is_empty() {
                losses.insert(name.display().to_string(), lines);
            }
        }
    }
    (count, losses)
}

#[test]
fn the_corpus_is_imported_with_the_losses_that_the_table_lists() {
    let (count, losses) = losses();
    assert!(count >= 300, "run tests/tools: {count}");
    let mut text = String::from(
        "# What `apiloom import` loses of the definitions of the corpus: the file, then a line for each part. UPDATE=1 writes it.\n",
    );
    for (name, lines) in &losses {
        text.push_str(&format!("{name}\n"));
        for line in lines {
            text.push_str(&format!("  {}\n", line.replace('\n', " ")));
        }
    }
    let path = repository().join(TABLE);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        (text.lines().collect(), committed.lines().collect());
    let new: Vec<_> = ours.iter().filter(|line| !theirs.contains(line)).collect();
    let gone: Vec<_> = theirs.iter().filter(|line| !ours.contains(line)).collect();
    assert!(
        text == committed,
        "{TABLE} is not what is lost; new: {new:#?}, no more: {gone:#?}"
    );
}

/// Runs the command in a folder: whether it succeeded, what it said, and what it said to stderr.
fn run_apiloom(folder: &Path, arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(build("apiloom"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said, told)
}

/// Runs the command, which succeeds.
#[track_caller]
fn apiloom(folder: &Path, arguments: &[&str]) {
    let (is_done, said, told) = run_apiloom(folder, arguments);
    assert!(is_done, "{arguments:?}: {said}{told}");
}

/// The first definition of each project of the corpus that is imported without loss.
fn corpus_sample() -> Vec<PathBuf> {
    let mut sample = Vec::new();
    for folder in corpus_projects() {
        // After the @ is another release of the same definitions.
        if folder.display().to_string().contains('@') {
            continue;
        }
        let is_whole = |path: &PathBuf| {
            let imported = documents(path)
                .iter()
                .map(imported_kind)
                .collect::<Vec<_>>();
            let lines = imported.iter().flat_map(|kind| match kind {
                Ok(kind) => kind.lost.iter().map(String::as_str).collect(),
                Err(_) => vec!["it is refused"],
            });
            lines
                .into_iter()
                .all(|line| line.contains(": conversion of "))
        };
        sample.extend(files(&folder).into_iter().find(is_whole));
    }
    assert!(sample.len() > 12, "{sample:?}");
    sample
}

/// Kinds that share types, and have others of the same names.
#[test]
fn folders_of_the_corpus_are_imported_at_once_without_loss() {
    let root = tempfile::tempdir().unwrap();
    for project in ["cnpg", "kueue", "prometheus-operator"] {
        let folder = repository().join("target/tools/crds").join(project);
        let arguments = ["import", project, folder.to_str().unwrap()];
        let (is_done, said, told) = run_apiloom(root.path(), &arguments);
        assert!(is_done, "{project}: {said}{told}");
        assert_eq!(told, "", "{project}");
    }
}

/// Documents of Kubernetes itself, which client-go has for its tests.
fn of_kubernetes(name: &str) -> PathBuf {
    let folder =
        "target/tools/client-go/usr/share/gocode/src/k8s.io/client-go/openapi/openapitest/testdata";
    repository()
        .join(folder)
        .join(format!("{name}_openapi.json"))
}

#[test]
fn documents_of_kubernetes_are_imported_without_loss() {
    let names = [
        "api__v1",
        "apis__apps__v1",
        "apis__batch__v1",
        "apis__discovery.k8s.io__v1",
    ];
    let paths = names.map(of_kubernetes);
    let documents: Vec<Value> = paths
        .iter()
        .map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
        .collect();
    let imported = imported_kinds(&documents).unwrap_or_else(|error| panic!("{error}"));
    assert!(imported.len() > 23, "{}", imported.len());
    let lost = imported.iter().flat_map(|kind| &kind.lost);
    let lost: Vec<_> = lost.filter(|line| !is_told_by_no_document(line)).collect();
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn the_package_of_an_import_gives_equivalent_definitions() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let sources = [
        "tests/tests/import",
        "tests/ports/balancer/generated/crds",
        "target/tools/crds/istio/virtualservices.networking.istio.io.yaml",
        "examples/wardle/generated/openapi/v3",
        "tests/ports/core/generated/openapi/v3",
        "tests/ports/cronjob/generated/openapi/v3",
        "tests/ports/machine/generated/openapi/v3",
        "tests/ports/workload/generated/openapi/v3/work.example.com_v1.json",
    ];
    let mut sources: Vec<PathBuf> = sources
        .iter()
        .map(|source| repository().join(source))
        .collect();
    if std::env::var_os("APILOOM_IMPORT_CORPUS").is_some() {
        let mut corpus = corpus_sample();
        corpus.retain(|path| !sources.contains(path));
        sources.append(&mut corpus);
    }
    let native = ["apis__apps__v1", "apis__batch__v1"].map(of_kubernetes);
    let mut arguments = vec!["import", "kinds"];
    let all = sources.iter().chain(&native);
    arguments.extend(all.map(|source| source.to_str().unwrap()));
    apiloom(&root, &arguments);
    apiloom(&root, &["generate", "kinds"]);
    apiloom(&root, &["generate", "kinds", "--check"]);

    let paths = sources.iter().flat_map(|source| {
        if source.is_dir() {
            files(source)
        } else {
            vec![source.clone()]
        }
    });
    let imported = paths.flat_map(|path| documents(&path));
    let (openapi, definitions): (Vec<Value>, Vec<Value>) =
        imported.partition(|document| document["openapi"].is_string());
    assert!(definitions.len() > 2, "{}", definitions.len());
    for document in definitions {
        let name = document["metadata"]["name"].as_str().unwrap().to_owned();
        let written = root.join(format!("kinds/generated/crds/{name}.yaml"));
        let [written] = &documents(&written)[..] else {
            panic!("{name} has one definition");
        };
        let differences = definition_differences(&document, written).unwrap();
        assert!(differences.is_empty(), "{name}: {differences:#?}");
    }
    assert!(openapi.len() > 6, "{}", openapi.len());
    let written = openapi_of(root.join("kinds").to_str().unwrap());
    let differences = openapi_differences(&openapi, &written).unwrap();
    assert!(differences.is_empty(), "{differences:#?}");
    // Gadgets and assemblies have a template, whose component contains itself in part.
    let shared = fs::read_to_string(root.join("kinds/src/gadgets/v1/shared.rs")).unwrap();
    for line in ["pub struct Template {", "pub not: Option<Box<Node>>,"] {
        assert!(shared.contains(line), "{line} in\n{shared}");
    }
    let binary = root.join("kinds/target/apiloom-builds/debug/kinds-server");
    check_rules_are_evaluated(&binary);
    check_native_kinds(&binary);
}

/// The lines of fields in the code of a module.
fn fields(code: &str) -> Vec<&str> {
    code.lines()
        .filter(|line| line.starts_with("    pub "))
        .collect()
}

#[test]
fn definitions_and_documents_of_a_running_server_are_imported() {
    let crds = repository().join("tests/tests/import/features.yaml");
    let crds = crds.to_str().unwrap();
    let server = Server::start_binary(&build("apiloom-serve"), &["--crds", crds]);
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let kubectl = repository().join("target/tools/kubectl-1.37/kubectl");
    let kubeconfig = root.join("kubeconfig");
    fs::copy(server.kubeconfig(), &kubeconfig).unwrap();
    let run = |package: &str, more: &[&str]| {
        let (kubectl, kubeconfig) = (kubectl.to_str().unwrap(), kubeconfig.to_str().unwrap());
        let base = ["import", package, "--from-cluster", "--kubectl", kubectl];
        let arguments = [&base[..], &["--kubeconfig", kubeconfig], more].concat();
        run_apiloom(&root, &arguments)
    };
    let fails = |more: &[&str], told: &str| {
        let (is_done, said, error) = run("none", more);
        let what = format!("error: {} could not read ", kubectl.display());
        assert!(
            !is_done && error.starts_with(&what) && error.contains(told),
            "{said}{error}"
        );
        assert!(!root.join("none").exists());
    };

    apiloom(&root, &["import", "file", crds]);
    let widget = fs::read_to_string(root.join("file/src/shop/v1/widget.rs")).unwrap();
    let name = "widgets.shop.example.com";
    for (package, module, more) in [
        ("all", "src/shop/v1/widget.rs", &[][..]),
        ("one", "src/v1/widget.rs", &["--crd", name]),
    ] {
        let (is_done, said, error) = run(package, more);
        assert!(is_done, "{said}{error}");
        let read = fs::read_to_string(root.join(package).join(module)).unwrap();
        assert_eq!(read, widget);
    }
    let (is_done, said, error) = run("published", &["--openapi", "shop.example.com/v1"]);
    assert!(is_done, "{said}{error}");
    // Columns and short names are not published.
    let published = fs::read_to_string(root.join("published/src/v1/widget.rs")).unwrap();
    assert_eq!(fields(&published), fields(&widget));

    fails(
        &["--crd", "none.example.com"],
        "the definitions: Error from server (NotFound)",
    );
    fails(
        &["--openapi", "none.example.com/v1"],
        "the document of none.example.com/v1: Error from server (NotFound)",
    );
    fails(
        &["--context", "none"],
        "context was not found for specified context: none",
    );
    drop(server);
    fails(&[], "was refused");
}

/// The server of an imported package refuses what breaks the rules in CEL of its definition.
fn check_rules_are_evaluated(binary: &Path) {
    let server = Server::start_binary(binary, &["--storage-backend=memory"]);
    let kubectl = Kubectl::new("1.37", server.kubeconfig());
    let widget = |name: &str, plain: i64, from: i64| {
        let spec = json!({"color": "red", "sizes": [1], "parts": [], "seen": null, "labels": {}, "blob": "", "level": 1,
            "plain": plain, "rules": [{"from": from, "to": 5}]});
        let object = json!({"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec});
        kubectl.run(&["create", "-f", "-"], &object.to_string())
    };
    let refused = widget("none", 100, 6);
    let line = |field: &str, text: &str| format!("* {field}: Invalid value: {text}\n");
    for expected in [
        line("<nil>", "failed rule: self.metadata.name != 'none'"),
        line("spec.settings.mode", "plain is too large"),
        line("spec.rules[0].from", "from is after to"),
    ] {
        assert!(
            refused.stderr.contains(&expected),
            "{expected}: {refused:?}"
        );
    }
    let created = widget("some", 99, 5);
    assert_eq!(
        created.stdout, "widget.shop.example.com/some created\n",
        "{created:?}"
    );
}

/// Kinds of Kubernetes itself treat objects as its own server does.
fn check_native_kinds(binary: &Path) {
    let server = Server::start_binary(binary, &["--storage-backend=memory"]);
    let kubectl = Kubectl::new("1.37", server.kubeconfig());
    let json = |arguments: &[&str], input: &str| {
        let output = kubectl.run(&[arguments, &["--output=json"]].concat(), input);
        serde_json::from_str::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    let port = json!({"containerPort": 80});
    // Two items with equal keys are no error.
    let container = json!({"name": "c", "image": "i", "ports": [port, port]});
    let mut set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}}});
    let created = json(&["create", "-f", "-"], &set.to_string());
    let zeros = json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0});
    assert_eq!(created["status"], zeros);
    let shown = &created["spec"]["template"]["spec"]["containers"][0]["ports"];
    let full = json!({"containerPort": 80, "protocol": "TCP"});
    assert_eq!(shown, &json!([full, full]));
    assert_eq!(created["spec"]["updateStrategy"], json!({}));

    // A status may leave out what is zero, and is written with metadata.
    let patch = json!({"metadata": {"labels": {"tier": "one"}}, "spec": {"minReadySeconds": 3},
        "status": {"numberReady": 1, "currentNumberScheduled": null, "conditions": [{"type": "Ready"}]}});
    let patched = json(
        &[
            "patch",
            "daemonset/d",
            "--subresource=status",
            "--type=merge",
            "--patch",
            &patch.to_string(),
        ],
        "",
    );
    assert_eq!(patched["metadata"]["labels"], json!({"tier": "one"}));
    assert_eq!(patched["spec"], created["spec"]);
    let mut status = zeros;
    status["numberReady"] = 1.into();
    status["conditions"] = json!([{"type": "Ready", "status": ""}]);
    assert_eq!(patched["status"], status);

    // What a spec has to say is still missed.
    set["metadata"]["name"] = "e".into();
    for (field, told) in [
        ("selector", "spec.selector: Required value"),
        ("template", "spec.template: Required value"),
    ] {
        let mut wrong = set.clone();
        wrong["spec"].as_object_mut().unwrap().remove(field);
        let refused = kubectl.run(&["create", "-f", "-"], &wrong.to_string());
        assert!(refused.stderr.contains(told), "{refused:?}");
    }
    let revision =
        json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r"}});
    assert_eq!(
        json(&["create", "-f", "-"], &revision.to_string())["revision"],
        0
    );
}
