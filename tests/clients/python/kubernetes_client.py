"""Drives wardle-server with the Python package `kubernetes`: typed clients of built-in kinds, the client of custom objects,
the dynamic client, watches and an informer. The argument is a kubeconfig."""

import json
import queue
import sys
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import SharedInformer
from urllib3.exceptions import HTTPError

from checks import ask, check, expect, run

config.load_kube_config(sys.argv[1])
CORE = client.CoreV1Api()
CUSTOM = client.CustomObjectsApi()
FLUNDERS = {"group": "wardle.example.com", "version": "v1beta1", "plural": "flunders"}
PATIENCE = 60


def make_namespace(name):
    body = client.V1Namespace(metadata=client.V1ObjectMeta(generate_name=f"{name}-"))
    return CORE.create_namespace(body).metadata.name


def config_map(name, data=None, **metadata):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, **metadata), data=data)


def flunder(name, reference, **spec):
    spec = {"flunderReference": reference, "referenceType": "Flunder", **spec}
    return {"apiVersion": "wardle.example.com/v1beta1", "kind": "Flunder", "metadata": {"name": name}, "spec": spec}


def fill(namespace, count):
    for i in range(count):
        labels = {"even": str(i % 2 == 0).lower()}
        CORE.create_namespaced_config_map(namespace, config_map(f"item-{i:03}", {"i": str(i)}, labels=labels))


def refused(code, reason, function, *args, **kwargs):
    """The Status of a request that has to fail with this code and reason."""
    try:
        function(*args, **kwargs)
    except ApiException as error:
        status = json.loads(error.body)
        expect((error.status, status["reason"]), (code, reason), status["message"])
        return status
    raise AssertionError(f"{function.__name__} did not fail with {code}")


@check
def discovery(_):
    groups = [group.name for group in client.ApisApi().get_api_versions().groups]
    for name in ["coordination.k8s.io", "events.k8s.io", "wardle.example.com"]:
        if name not in groups:
            raise AssertionError(f"{name} is missing among {groups}")
    names = {resource.name: resource for resource in CORE.get_api_resources().resources}
    for name in ["configmaps", "secrets", "serviceaccounts", "events", "namespaces", "namespaces/status"]:
        expect(name in names, True, f"{name} among {sorted(names)}")
    expect(names["configmaps"].namespaced, True, "configmaps")
    expect(names["namespaces"].namespaced, False, "namespaces")
    found = dynamic.DynamicClient(client.ApiClient()).resources.search(kind="Flunder")
    found = {resource.group_version: resource.preferred for resource in found}
    expect(found, {"wardle.example.com/v1beta1": True, "wardle.example.com/v1alpha1": False}, "versions of a kind")
    version = client.VersionApi().get_code()
    expect(version.major, "1", "the version")


@check
def objects(namespace):
    created = CORE.create_namespaced_config_map(namespace, config_map("one", {"a": "1"}))
    expect(bool(created.metadata.uid and created.metadata.resource_version), True, "metadata of a new object")
    expect(CORE.read_namespaced_config_map("one", namespace), created, "a read")
    CUSTOM.create_namespaced_custom_object(namespace=namespace, body=flunder("one", "two"), **FLUNDERS)
    found = CUSTOM.get_namespaced_custom_object(namespace=namespace, name="one", **FLUNDERS)
    expect(found["spec"]["flunderReference"], "two", "a flunder")
    secret = client.V1Secret(metadata=client.V1ObjectMeta(name="one"), string_data={"word": "sesame"})
    expect(CORE.create_namespaced_secret(namespace, secret).data, {"word": "c2VzYW1l"}, "data of a secret")
    lease = client.V1Lease(metadata=client.V1ObjectMeta(name="one"), spec=client.V1LeaseSpec(holder_identity="me"))
    lease = client.CoordinationV1Api().create_namespaced_lease(namespace, lease)
    expect(lease.spec.holder_identity, "me", "the holder of a lease")
    event = client.CoreV1Event(
        metadata=client.V1ObjectMeta(name="one"),
        involved_object=client.V1ObjectReference(kind="ConfigMap", name="one", namespace=namespace),
        reason="Tried",
        message="it was tried",
        type="Normal",
    )
    CORE.create_namespaced_event(namespace, event)
    found = CORE.list_namespaced_event(namespace, field_selector="involvedObject.name=one,reason=Tried")
    expect([event.message for event in found.items], ["it was tried"], "events of an object")


@check
def refusals(namespace):
    refused(404, "NotFound", CORE.read_namespaced_config_map, "nothing", namespace)
    CORE.create_namespaced_config_map(namespace, config_map("one"))
    refused(409, "AlreadyExists", CORE.create_namespaced_config_map, namespace, config_map("one"))
    status = refused(422, "Invalid", CORE.create_namespaced_config_map, namespace, config_map("Not_A_Name"))
    expect([cause["field"] for cause in status["details"]["causes"]], ["metadata.name"], "causes")
    both = flunder("both", "a", fischerReference="b")
    refused(422, "Invalid", CUSTOM.create_namespaced_custom_object, namespace=namespace, body=both, **FLUNDERS)
    refused(404, "NotFound", CORE.create_namespaced_config_map, "no-such-namespace", config_map("one"))
    CORE.create_namespaced_config_map(namespace, config_map("dry"), dry_run="All")
    refused(404, "NotFound", CORE.read_namespaced_config_map, "dry", namespace)
    unknown = flunder("strict", "a", bogus=1)
    refused(
        400, "BadRequest", CUSTOM.create_namespaced_custom_object,
        namespace=namespace, body=unknown, field_validation="Strict", **FLUNDERS,
    )


@check
def pages(namespace):
    fill(namespace, 25)
    names, remaining, token = [], [], None
    while True:
        page = CORE.list_namespaced_config_map(namespace, limit=10, _continue=token)
        names += [item.metadata.name for item in page.items]
        remaining.append(page.metadata.remaining_item_count)
        token = page.metadata._continue
        if not token:
            break
    expect(names, [f"item-{i:03}" for i in range(25)], "names of all pages")
    expect(remaining, [15, 5, None], "remaining items")
    even = CORE.list_namespaced_config_map(namespace, label_selector="even=true")
    expect(len(even.items), 13, "even objects")
    one = CORE.list_namespaced_config_map(namespace, field_selector="metadata.name=item-007")
    expect([item.data for item in one.items], [{"i": "7"}], "objects of a name")


@check
def conflicts(namespace):
    """Four writers count in one object; none of their counts is lost."""
    first = CORE.create_namespaced_config_map(namespace, config_map("counter", {"n": "0"}))
    newer = CORE.read_namespaced_config_map("counter", namespace)
    newer.metadata.labels = {"changed": "yes"}
    CORE.replace_namespaced_config_map("counter", namespace, newer)
    refused(409, "Conflict", CORE.replace_namespaced_config_map, "counter", namespace, first)
    results = queue.Queue()

    def count():
        try:
            own = client.CoreV1Api(client.ApiClient())
            for _ in range(10):
                while True:
                    present = own.read_namespaced_config_map("counter", namespace)
                    present.data["n"] = str(int(present.data["n"]) + 1)
                    try:
                        own.replace_namespaced_config_map("counter", namespace, present)
                        break
                    except ApiException as error:
                        if error.status != 409:
                            raise
            results.put(None)
        except Exception as error:
            results.put(error)

    for _ in range(4):
        threading.Thread(target=count, daemon=True).start()
    for _ in range(4):
        error = results.get(timeout=PATIENCE)
        if error:
            raise error
    expect(CORE.read_namespaced_config_map("counter", namespace).data["n"], "40", "the count")


@check
def patches(namespace):
    CORE.create_namespaced_config_map(namespace, config_map("one", {"a": "1", "b": "2"}))

    def patch(body, content_type, **kwargs):
        return CORE.patch_namespaced_config_map("one", namespace, body, _content_type=content_type, **kwargs)

    merged = patch({"data": {"a": None, "c": "3"}}, "application/merge-patch+json")
    expect(merged.data, {"b": "2", "c": "3"}, "a merge patch")
    test = {"op": "test", "path": "/data/b", "value": "2"}
    patched = patch([test, {"op": "remove", "path": "/data/b"}], "application/json-patch+json")
    expect(patched.data, {"c": "3"}, "a JSON patch")
    refused(422, "Invalid", patch, [test], "application/json-patch+json")
    strategic = patch({"data": {"$patch": "replace", "d": "4"}}, "application/strategic-merge-patch+json")
    expect(strategic.data, {"d": "4"}, "a strategic merge patch")
    # A list with a merge key.
    account = client.V1ServiceAccount(
        metadata=client.V1ObjectMeta(name="one"), secrets=[client.V1ObjectReference(name="a")]
    )
    CORE.create_namespaced_service_account(namespace, account)
    account = CORE.patch_namespaced_service_account(
        "one", namespace, {"secrets": [{"name": "b"}]}, _content_type="application/strategic-merge-patch+json"
    )
    expect(sorted(secret.name for secret in account.secrets), ["a", "b"], "a strategic merge patch of a list")
    # The kinds of a user have no strategic merge patches, as custom resources have none.
    CUSTOM.create_namespaced_custom_object(namespace=namespace, body=flunder("one", "first"), **FLUNDERS)
    body = {"spec": {"flunderReference": "two"}}

    def patch_flunder(body, content_type, **kwargs):
        return CUSTOM.patch_namespaced_custom_object(
            namespace=namespace, name="one", body=body, _content_type=content_type, **kwargs, **FLUNDERS
        )

    refused(415, "UnsupportedMediaType", patch_flunder, body, "application/strategic-merge-patch+json")
    expect(patch_flunder(body, "application/merge-patch+json")["spec"]["flunderReference"], "two", "a merge patch")
    operation = {"op": "replace", "path": "/spec/flunderReference", "value": "three"}
    patched = patch_flunder([operation], "application/json-patch+json")
    expect(patched["spec"]["flunderReference"], "three", "a JSON patch of a flunder")


@check
def apply(namespace):
    def apply_as(manager, data, **kwargs):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": data}
        return CORE.patch_namespaced_config_map(
            "one", namespace, body, field_manager=manager, _content_type="application/apply-patch+yaml", **kwargs
        )

    apply_as("first", {"a": "1", "b": "1"})
    expect(apply_as("second", {"a": "1", "c": "2"}).data, {"a": "1", "b": "1", "c": "2"}, "two managers")
    status = refused(409, "Conflict", apply_as, "second", {"b": "2"})
    expect([cause["field"] for cause in status["details"]["causes"]], [".data.b"], "fields of the conflict")
    taken = apply_as("second", {"b": "2"}, force=True)
    # The second manager no longer has `a`, which the first still has, and `c`, which it had alone.
    expect(taken.data, {"a": "1", "b": "2"}, "a forced apply")
    managers = {entry.manager: entry.operation for entry in taken.metadata.managed_fields}
    expect(managers, {"first": "Apply", "second": "Apply"}, "managers")
    expect(apply_as("first", {"a": "1"}).data, {"a": "1", "b": "2"}, "an apply without a lost field")
    resource = dynamic.DynamicClient(client.ApiClient()).resources.get(
        api_version="wardle.example.com/v1beta1", kind="Flunder"
    )
    applied = resource.server_side_apply(
        flunder("one", "two"), name="one", namespace=namespace, field_manager="first"
    )
    expect(applied.spec.flunderReference, "two", "a flunder")


@check
def status(namespace):
    """A namespace has conditions in its status; the status of a flunder is written apart from its spec."""
    condition = {
        "type": "Tried", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"
    }
    body = {"metadata": {"labels": {"from": "status"}}, "status": {"conditions": [condition]}}
    patched = CORE.patch_namespace_status(namespace, body, _content_type="application/merge-patch+json")
    expect([one.type for one in patched.status.conditions], ["Tried"], "conditions")
    present = CORE.read_namespace(namespace)
    present.status.conditions = None
    present.metadata.annotations = {"a": "b"}
    replaced = CORE.replace_namespace(namespace, present)
    expect([one.type for one in replaced.status.conditions], ["Tried"], "conditions after an update")
    CUSTOM.create_namespaced_custom_object(namespace=namespace, body=flunder("one", "two"), **FLUNDERS)
    found = CUSTOM.get_namespaced_custom_object(namespace=namespace, name="one", **FLUNDERS)
    found["spec"]["flunderReference"] = "other"
    found["status"] = {}
    replaced = CUSTOM.replace_namespaced_custom_object_status(namespace=namespace, name="one", body=found, **FLUNDERS)
    expect(replaced["spec"]["flunderReference"], "two", "the spec after an update of the status")
    expect(replaced.get("status"), {}, "the status")


@check
def deletion(namespace):
    fill(namespace, 6)
    wrong = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="00000000-0000-0000-0000-000000000000"))
    refused(409, "Conflict", CORE.delete_namespaced_config_map, "item-000", namespace, body=wrong)
    CORE.delete_collection_namespaced_config_map(namespace, label_selector="even=true")
    finalizers = {"metadata": {"finalizers": ["example.com/wait"]}}
    CORE.patch_namespaced_config_map("item-001", namespace, finalizers, _content_type="application/merge-patch+json")
    CORE.delete_namespaced_config_map("item-001", namespace)
    held = CORE.read_namespaced_config_map("item-001", namespace)
    expect(held.metadata.deletion_timestamp is not None, True, "a deletionTimestamp")
    held.metadata.finalizers = None
    CORE.replace_namespaced_config_map("item-001", namespace, held)
    left = CORE.list_namespaced_config_map(namespace)
    expect([item.metadata.name for item in left.items], ["item-003", "item-005"], "what is left")


def watched(namespace, version, count):
    """Reads this many events after a version, over restarts of the server: a lost connection is resumed."""
    events = []
    while len(events) < count:
        watcher = watch.Watch()
        try:
            stream = watcher.stream(
                CORE.list_namespaced_config_map, namespace, resource_version=version, _request_timeout=PATIENCE
            )
            for event in stream:
                metadata = event["object"].metadata
                version = metadata.resource_version
                events.append((event["type"], metadata.name))
                if len(events) == count:
                    watcher.stop()
        except (ApiException, HTTPError, OSError) as error:
            # Of a restart, and of a server that is not ready yet.
            if isinstance(error, ApiException) and error.status not in (429, 500, 503):
                raise
    return events


def watch_over(how, namespace):
    version = CORE.list_namespaced_config_map(namespace).metadata.resource_version
    wanted = [("ADDED", f"item-{i:03}") for i in range(10)]
    wanted += [("MODIFIED", "item-003"), ("ADDED", "last"), ("DELETED", "item-004"), ("DELETED", "last")]
    result = queue.Queue()

    def read():
        try:
            result.put(watched(namespace, version, len(wanted)))
        except Exception as error:
            result.put(error)

    threading.Thread(target=read, daemon=True).start()
    fill(namespace, 10)
    ask(how)
    CORE.patch_namespaced_config_map(
        "item-003", namespace, {"data": {"i": "changed"}}, _content_type="application/merge-patch+json"
    )
    CORE.create_namespaced_config_map(namespace, config_map("last"))
    CORE.delete_namespaced_config_map("item-004", namespace)
    ask(how)
    CORE.delete_namespaced_config_map("last", namespace)
    events = result.get(timeout=PATIENCE)
    if isinstance(events, Exception):
        raise events
    expect(events, wanted, "events")


@check
def watch_across_a_restart(namespace):
    watch_over("restart", namespace)


@check
def watch_across_a_crash(namespace):
    watch_over("kill", namespace)


@check
def informer(namespace):
    fill(namespace, 5)
    events = queue.Queue()
    informer = SharedInformer(CORE.list_namespaced_config_map, namespace=namespace)
    for kind in ["ADDED", "MODIFIED", "DELETED"]:
        informer.add_event_handler(kind, lambda object, kind=kind: events.put((kind, object.metadata.name)))
    informer.start()
    try:
        for i in range(5):
            expect(events.get(timeout=PATIENCE), ("ADDED", f"item-{i:03}"), "an initial event")
        CORE.create_namespaced_config_map(namespace, config_map("later"))
        expect(events.get(timeout=PATIENCE), ("ADDED", "later"), "an event")
        CORE.delete_namespaced_config_map("item-002", namespace)
        expect(events.get(timeout=PATIENCE), ("DELETED", "item-002"), "an event")
        expect(len(informer.cache.list()), 5, "objects in the cache")
    finally:
        informer.stop()


run(make_namespace)
