//! `apiloom serve`: a server without a package, which installs the CustomResourceDefinitions of files before it is ready.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use apiloom_tests::{Client, Kubectl, Server, build, created, revision};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition in the group ex.io with these properties of the spec.
fn definition(plural: &str, kind: &str, properties: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.ex.io"), "creationTimestamp": null},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": properties}},
            }}}],
        },
        "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": []},
    })
}

fn write(path: &Path, documents: &[Value]) {
    let texts: Vec<String> = documents
        .iter()
        .map(|one| serde_saphyr::to_string(one).unwrap())
        .collect();
    fs::write(path, texts.join("---\n")).unwrap();
}

/// Fifty definitions in files of two.
fn write_fifty(folder: &Path) {
    for at in 0..25 {
        let two = [2 * at, 2 * at + 1].map(|number| {
            definition(
                &format!("things{number}"),
                &format!("Thing{number}"),
                &json!({"size": {"type": "integer"}}),
            )
        });
        write(&folder.join(format!("{at:02}.yaml")), &two);
    }
}

fn start(data: &Path, crds: &Path) -> Server {
    let crds = crds.to_str().unwrap();
    Server::start_binary_in(&build("apiloom-serve"), data, &["--crds", crds])
}

/// Runs the server until it ends by itself.
fn run(folder: &Path, arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(build("apiloom-serve"))
        .current_dir(folder)
        .args(["--secure-port=0", "--data-dir=data"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

#[track_caller]
fn refuses(folder: &Path, arguments: &[&str], stdin: &str, expected: &[&str]) {
    let output = run(folder, arguments, stdin);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
    assert!(!folder.join("data").exists(), "nothing is begun");
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    conditions
        .iter()
        .any(|one| one["type"] == "Established" && one["status"] == "True")
}

#[tokio::test]
async fn kinds_are_served_when_the_server_is_ready() {
    let root = tempfile::tempdir().unwrap();
    let crds = root.path().join("crds");
    fs::create_dir_all(crds.join("below")).unwrap();
    let size =
        json!({"size": {"type": "integer", "maximum": 9, "description": "How large it is."}});
    write(
        &crds.join("below/foos.yaml"),
        &[
            json!({"kind": "ConfigMap", "apiVersion": "v1"}),
            definition("foos", "Foo", &size),
        ],
    );
    fs::write(
        crds.join("bars.json"),
        definition("bars", "Bar", &json!({})).to_string(),
    )
    .unwrap();
    fs::write(crds.join("README.md"), "{{ no YAML }}").unwrap();
    let kubeconfig = root.path().join("config");
    let arguments = [
        "--crds",
        crds.to_str().unwrap(),
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--storage-backend=memory",
    ];
    let server = Server::start_binary(&build("apiloom-serve"), &arguments);
    assert!(
        server.ready_line.starts_with("apiloom ready at https://"),
        "{}",
        server.ready_line
    );
    assert_eq!(server.kubeconfig(), kubeconfig.canonicalize().unwrap());
    let mode = fs::metadata(&kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let kubectl = Kubectl::new("1.37", &kubeconfig);
    let ok = |arguments: &[&str], stdin: &str| {
        let output = kubectl.run(arguments, stdin);
        assert_eq!(
            (output.code, &*output.stderr),
            (0, ""),
            "{arguments:?}: {}",
            output.stdout
        );
        output.stdout
    };
    let object = "{apiVersion: ex.io/v1, kind: Foo, metadata: {name: a}, spec: {size: 3}}";
    assert_eq!(ok(&["apply", "-f", "-"], object), "foo.ex.io/a created\n");
    assert!(ok(&["get", "foos,bars", "-o", "name"], "").contains("foo.ex.io/a"));
    assert!(ok(&["explain", "foo.spec.size"], "").contains("How large it is."));
    assert!(ok(&["api-resources", "-o", "name"], "").contains("configmaps\n"));
    let refused = kubectl.run(&["apply", "-f", "-"], &object.replace("3}", "12}"));
    assert!(
        refused.stderr.contains("should be less than or equal to 9"),
        "{refused:?}"
    );
    let ready = server.client().get("/readyz?verbose").await.text();
    assert!(
        ready.contains("[+]poststarthook/install-definitions ok\n"),
        "{ready}"
    );
}

/// Whether a server has roles, how it answers a user without credentials, and one that the administrator is for a request.
async fn roles(server: &Server) -> (u16, u16, u16) {
    let administrator = server.client();
    administrator.until_ready().await;
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin";
    let configmaps = "/api/v1/namespaces/default/configmaps";
    let anonymous = administrator.clone().anonymous();
    let user = [("impersonate-user", "bob")];
    let user = administrator.call("GET", "/api", &user, "").await;
    (
        administrator.get(role).await.code,
        anonymous.get(configmaps).await.code,
        user.code,
    )
}

/// A server by a command of apiloom has users with roles, any server if the environment says so.
#[tokio::test]
async fn users_have_roles() {
    let memory = "--storage-backend=memory";
    let serve = build("apiloom-serve");
    let server = Server::start_binary(&serve, &[memory]);
    assert_eq!(roles(&server).await, (200, 403, 200));
    let only_administrator = [memory, "--authorization-mode=AlwaysDeny"];
    let server = Server::start_binary(&serve, &only_administrator);
    assert_eq!(roles(&server).await, (404, 403, 403));

    let folder = tempfile::tempdir().unwrap();
    let variable = "APILOOM_AUTHORIZATION_MODE";
    let start =
        |name: &str, modes: &[(&str, &Path)]| Server::start_with(&folder.path().join(name), modes);
    let server = start("roles", &[(variable, Path::new("RBAC"))]);
    assert_eq!(roles(&server).await, (200, 403, 200));
    let server = start("none", &[]);
    assert_eq!(roles(&server).await, (404, 403, 403));
}

/// It issues tokens of service accounts without a flag, by a key that it keeps, and tells users who they are.
#[tokio::test]
async fn service_accounts_have_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let start = || Server::start_binary_in(&build("apiloom-serve"), &data, &[]);
    let server = start();
    let kubectl = Kubectl::new("1.36", server.kubeconfig());
    let ok = |args: &[&str]| {
        let output = kubectl.run(args, "");
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
        output.stdout
    };
    assert!(ok(&["auth", "whoami"]).contains("kubernetes-admin"));
    ok(&["create", "serviceaccount", "keeper"]);
    let token = ok(&["create", "token", "keeper"]);
    let whoami = async |server: &Server| {
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let client = server.client().with_token(token.trim());
        let answer = client.post(path, &json!({})).await;
        (
            answer.code,
            answer.json()["status"]["userInfo"]["username"].clone(),
        )
    };
    let keeper = (201, json!("system:serviceaccount:default:keeper"));
    assert_eq!(whoami(&server).await, keeper);
    drop(server.stop());
    let server = start();
    server.client().until_ready().await;
    assert_eq!(whoami(&server).await, keeper, "after a restart");
}

#[tokio::test]
async fn a_restart_applies_what_has_changed() {
    let root = tempfile::tempdir().unwrap();
    let crds = root.path().join("crds");
    fs::create_dir(&crds).unwrap();
    write(
        &crds.join("foos.yaml"),
        &[definition(
            "foos",
            "Foo",
            &json!({"size": {"type": "integer"}}),
        )],
    );
    write(
        &crds.join("bars.yaml"),
        &[definition("bars", "Bar", &json!({}))],
    );
    let server = start(&root.path().join("data"), &crds);
    let foos = "/apis/ex.io/v1/namespaces/default/foos";
    let foo = |name: &str, spec: Value| json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": name}, "spec": spec});
    let client = server.client();
    let stored = created(&client, foos, &foo("a", json!({"size": 1, "color": "red"}))).await;
    assert_eq!(stored["spec"], json!({"size": 1}));
    let definitions = async |client: &Client| {
        let one = async |name: &str| client.get(&format!("{CRDS}/{name}.ex.io")).await.json();
        [one("foos").await, one("bars").await]
    };
    let [before, other] = definitions(&client).await;
    let (data, _) = server.stop();

    // Nothing has changed, so nothing is written.
    let server = start(&data, &crds);
    assert_eq!(
        definitions(&server.client()).await,
        [before.clone(), other.clone()]
    );
    let (data, _) = server.kill();

    // One changed and one is no longer there.
    let properties = json!({"size": {"type": "integer"}, "color": {"type": "string"}});
    write(
        &crds.join("foos.yaml"),
        &[definition("foos", "Foo", &properties)],
    );
    fs::remove_file(crds.join("bars.yaml")).unwrap();
    let server = start(&data, &crds);
    let client = server.client();
    let [now, same] = definitions(&client).await;
    assert_eq!(same, other);
    assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(now["metadata"]["generation"], 2);
    assert!(revision(&now) > revision(&before));
    // The changed schema is the one that is served as soon as the server is ready.
    let stored = created(&client, foos, &foo("b", json!({"color": "red"}))).await;
    assert_eq!(stored["spec"], json!({"color": "red"}));
    assert_eq!(
        client.get(&format!("{foos}/a")).await.json()["spec"],
        json!({"size": 1})
    );

    // What a client changed is as the file says after a restart.
    let patch = json!([{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color"}]);
    let changed = client
        .json_patch(&format!("{CRDS}/foos.ex.io"), &patch)
        .await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    let (data, _) = server.stop();
    let server = start(&data, &crds);
    let stored = created(&server.client(), foos, &foo("c", json!({"color": "blue"}))).await;
    assert_eq!(stored["spec"], json!({"color": "blue"}));
}

#[tokio::test]
async fn an_installation_that_is_killed_is_finished_by_the_next_start() {
    let root = tempfile::tempdir().unwrap();
    let crds = root.path().join("crds");
    fs::create_dir(&crds).unwrap();
    write_fifty(&crds);
    // The first run is killed when this many lines of the log say that the status of a definition was written.
    for lines in [1, 15, 30] {
        let data = root.path().join(format!("data{lines}"));
        let mut child = Command::new(build("apiloom-serve"))
            .args(["--secure-port=0", "-v2", "--crds"])
            .arg(&crds)
            .arg("--data-dir")
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let writes = log
            .lines()
            .map_while(Result::ok)
            .filter(|line| line.contains("PATCH"));
        assert_eq!(writes.take(lines).count(), lines);
        child.kill().unwrap();
        child.wait().unwrap();
        check_all_are_served(&data, &crds).await;
    }
}

/// Checks that the next start serves the kinds of all fifty definitions.
async fn check_all_are_served(data: &Path, crds: &Path) {
    let server = start(data, crds);
    let client = server.client();
    let all = client.get(CRDS).await.json();
    let all = all["items"].as_array().unwrap();
    assert_eq!(all.len(), 50);
    assert!(all.iter().all(is_established));
    for number in 0..50 {
        let answer = client.get(&format!("/apis/ex.io/v1/things{number}")).await;
        assert_eq!(answer.code, 200, "{number}: {}", answer.text());
    }
}

#[test]
fn files_that_cannot_be_installed_are_named_before_anything_starts() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    let crds = folder.join("crds");
    fs::create_dir(&crds).unwrap();
    let refuses = |arguments: &[&str], stdin: &str, expected: &[&str]| {
        refuses(folder, arguments, stdin, expected);
    };
    let none = |path: &str| format!("error: --crds={path}: there is no CustomResourceDefinition");
    refuses(&["--crds", "crds"], "", &[&none("crds")]);
    refuses(&["--crds", "-"], "kind: ConfigMap\n", &[&none("-")]);
    refuses(
        &["--crds", "none"],
        "",
        &["error: cannot read none: No such file or directory (os error 2)"],
    );

    // All problems of all files, with document and field.
    let mut wrong = definition("foos", "Foo", &json!({"size": {"type": "integr"}}));
    wrong["spec"]["scope"] = json!("Everywhere");
    write(
        &crds.join("a.yaml"),
        &[definition("bars", "Bar", &json!({})), wrong],
    );
    let mut mistyped = definition("bazs", "Baz", &json!({}));
    mistyped["spec"]["versions"] = json!("v1");
    write(&crds.join("b.yaml"), &[mistyped]);
    let output = run(folder, &["--crds", "crds"], "");
    let told = String::from_utf8(output.stderr).unwrap();
    let at = "error: crds/a.yaml, document 2: foos.ex.io: spec.";
    assert!(
        told.contains(&format!("{at}scope: Unsupported value: \"Everywhere\"")),
        "{told}"
    );
    assert!(
        told.contains(&format!(
            "{at}validation.openAPIV3Schema.properties[spec].properties[size].type: "
        )),
        "{told}"
    );
    let mistyped = "error: crds/b.yaml: bazs.ex.io: ";
    assert!(
        told.lines()
            .any(|line| line.starts_with(mistyped) && line.contains("spec.versions")),
        "{told}"
    );
    assert!(
        told.lines().all(|line| line.starts_with("error: crds/")),
        "{told}"
    );
    assert!(!told.contains("bars.ex.io"), "{told}");
    assert!(!folder.join("data").exists());

    fs::remove_file(crds.join("b.yaml")).unwrap();
    fs::write(crds.join("a.yaml"), "kind: ConfigMap\n---\na: [1\n").unwrap();
    let output = run(folder, &["--crds", "crds"], "");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.starts_with(
            "error: crds/a.yaml, document 2: error converting YAML to JSON: yaml: line "
        ),
        "{told}"
    );

    // Names that two of them want, and those of a built-in kind in its group.
    let mut same = definition("bars", "Bar", &json!({}));
    same["spec"]["names"]["shortNames"] = json!(["ba"]);
    let mut other = definition("bazs", "Baz", &json!({}));
    other["spec"]["names"]["shortNames"] = json!(["ba"]);
    write(&crds.join("a.yaml"), &[same.clone(), other]);
    write(&crds.join("c.yaml"), &[same]);
    refuses(
        &["--crds", "crds"],
        "",
        &[
            "error: crds/a.yaml, document 2: bazs.ex.io: ShortNamesConflict: \"ba\" is already in use",
            "error: bars.ex.io is in crds/a.yaml, document 1 and in crds/c.yaml",
        ],
    );
    fs::write(folder.join("config"), "a note").unwrap();
    refuses(
        &["--crds", "-", "--kubeconfig", "config"],
        &definition("bars", "Bar", &json!({})).to_string(),
        &[
            "error: config: is no kubeconfig of this server alone, so it is not overwritten; remove it, or choose another file",
        ],
    );
}

#[tokio::test]
async fn names_of_stored_definitions_are_not_taken() {
    let root = tempfile::tempdir().unwrap();
    let (crds, data) = (root.path().join("foos.yaml"), root.path().join("data"));
    let mut first = definition("foos", "Foo", &json!({}));
    first["spec"]["names"]["shortNames"] = json!(["fo"]);
    write(&crds, &[first]);
    let (data, _) = {
        let server = start(&data, &crds);
        server.stop()
    };
    let mut second = definition("fools", "Fool", &json!({}));
    second["spec"]["names"]["shortNames"] = json!(["fo"]);
    write(&root.path().join("fools.yaml"), &[second]);
    let output = run(root.path(), &["--crds", "fools.yaml"], "");
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        told,
        "error: fools.yaml: fools.ex.io: ShortNamesConflict: \"fo\" is already in use\n"
    );
    assert_eq!(output.status.code(), Some(1));
    // It can be corrected.
    write(
        &root.path().join("fools.yaml"),
        &[definition("fools", "Fool", &json!({}))],
    );
    let server = start(&data, &root.path().join("fools.yaml"));
    let answer = server.client().get("/apis/ex.io/v1/fools").await;
    assert_eq!(answer.code, 200, "{}", answer.text());
}

/// The command in a folder without sources, and a folder for programs on its path, with a cargo that must not run.
struct Installed {
    _root: tempfile::TempDir,
    folder: PathBuf,
    path: PathBuf,
}

impl Installed {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().canonicalize().unwrap();
        let path = folder.join("bin");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("cargo"), "#!/bin/sh\n: >\"$0.ran\"\n").unwrap();
        fs::set_permissions(path.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(build("apiloom"), folder.join("apiloom")).unwrap();
        Self {
            _root: root,
            folder,
            path,
        }
    }

    fn serve(&self, command: &Path, arguments: &[&str]) -> Command {
        let mut serve = Command::new(command);
        serve
            .current_dir(&self.folder)
            .arg("serve")
            .args(arguments)
            .env("PATH", &self.path)
            .env("CARGO", self.path.join("cargo"));
        serve
    }

    /// Runs to the end: the exit code, and what was said and told.
    fn run(&self, command: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut serve = self.serve(command, arguments);
        let output = serve.stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (said, told) = (text(output.stdout), text(output.stderr));
        assert!(!self.path.join("cargo.ran").exists(), "{told}");
        (output.status.code(), said, told)
    }
}

/// The command runs the program that is beside it or on the path, with all flags, and builds nothing.
#[tokio::test]
async fn the_command_runs_the_program_without_sources() {
    let installed = Installed::new();
    let own = installed.folder.join("apiloom");
    let (code, said, told) = installed.run(&own, &["--help"]);
    assert_eq!((code, &*said), (Some(1), ""));
    let expected = format!(
        "error: the server is a program of its own, `apiloom-serve`, and is neither in {} nor on PATH\n  help: ",
        installed.folder.display()
    );
    assert!(told.starts_with(&expected), "{told}");
    let help = told.trim_end().rsplit_once(": ").unwrap().1;
    assert_eq!(help, "cargo install --path serve --debug --locked");

    let check = || {
        let (code, help, _) = installed.run(&own, &["--help"]);
        assert_eq!(code, Some(0));
        assert!(help.contains("Usage: apiloom serve [OPTIONS]"), "{help}");
        assert!(help.contains("--crds <PATH>..."), "{help}");
        let expected = "error: cannot read none: No such file or directory (os error 2)\n";
        assert_eq!(
            installed.run(&own, &["--crds", "none"]),
            (Some(1), String::new(), expected.to_owned())
        );
    };
    let program = "apiloom-serve";
    fs::copy(build(program), installed.path.join(program)).unwrap();
    check();
    fs::rename(installed.path.join(program), installed.folder.join(program)).unwrap();
    check();

    let crds = installed.folder.join("crds");
    fs::create_dir(&crds).unwrap();
    write(
        &crds.join("foos.yaml"),
        &[definition("foos", "Foo", &json!({}))],
    );
    let data = installed.folder.join("data");
    let mut serve = installed.serve(&own, &["--crds", "crds", "--data-dir"]);
    serve.arg(&data);
    let server = Server::start_by(serve, &data);
    let answer = server.client().get("/apis/ex.io/v1/foos").await;
    assert_eq!(answer.code, 200, "{}", answer.text());
}

/// In cargo's folder too: the program beside the command is run as it is, also one that was built with other features.
#[test]
fn the_command_builds_nothing_in_a_clone() {
    let installed = Installed::new();
    build("apiloom-serve");
    let (code, help, told) = installed.run(&build("apiloom"), &["--help"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(help.contains("Usage: apiloom serve [OPTIONS]"), "{help}");
}

#[cfg(feature = "etcd")]
#[tokio::test]
async fn two_servers_over_a_store_install_the_same_definitions() {
    use apiloom_tests::etcd::Etcd;

    let root = tempfile::tempdir().unwrap();
    let crds = root.path().join("foos.yaml");
    write(&crds, &[definition("foos", "Foo", &json!({}))]);
    let etcd = Etcd::start(Etcd::RELEASES[0]);
    let start = || {
        let arguments = [
            "--crds",
            crds.to_str().unwrap(),
            "--etcd-servers",
            &etcd.url(),
        ];
        Server::start_binary(&build("apiloom-serve"), &arguments)
    };
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(start);
        (start(), other.join().unwrap())
    });
    for server in [&first, &second] {
        let client = server.client();
        let found = client.get(&format!("{CRDS}/foos.ex.io")).await.json();
        assert!(is_established(&found), "{found}");
        assert_eq!(client.get("/apis/ex.io/v1/foos").await.code, 200);
    }
}
