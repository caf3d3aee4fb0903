"""Drives wardle-server with the Python package `kr8s`: objects of built-in and other kinds, patches, waiting and watches. The
argument is a kubeconfig."""

import asyncio
import json
import sys

import httpx
import kr8s
from kr8s.asyncio.objects import ConfigMap, Namespace, new_class

from checks import ask, check, expect, run

PATIENCE = 60
FLUNDER = new_class("Flunder", "wardle.example.com/v1beta1", plural="flunders")


def config_map(name, namespace, data=None, **metadata):
    return {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **metadata}, "data": data or {},
    }


def flunder(name, namespace, reference):
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"flunderReference": reference, "referenceType": "Flunder"},
    }


def asynchronous(function):
    """Registers an asynchronous check, which gets a client and the name of a namespace."""

    def run_check(namespace):
        async def run_with_client():
            api = await kr8s.asyncio.api(kubeconfig=sys.argv[1])
            await asyncio.wait_for(function(api, namespace), PATIENCE)

        asyncio.run(run_with_client())

    run_check.__name__ = function.__name__
    return check(run_check)


def make_namespace(name):
    async def make():
        api = await kr8s.asyncio.api(kubeconfig=sys.argv[1])
        namespace = await Namespace({"metadata": {"generateName": f"{name}-"}}, api=api)
        await namespace.create()
        return namespace.name

    return asyncio.run(make())


async def create(api, document, kind=ConfigMap):
    object = await kind(document, api=api)
    await object.create()
    return object


async def fill(api, namespace, count):
    for i in range(count):
        labels = {"even": str(i % 2 == 0).lower()}
        await create(api, config_map(f"item-{i:03}", namespace, {"i": str(i)}, labels=labels))


async def refused(code, request):
    """The Status of a request that has to fail with this code."""
    try:
        await request
    except kr8s.ServerError as error:
        expect(error.response.status_code, code, str(error))
        return error.status
    raise AssertionError(f"a request did not fail with {code}")


async def replace(api, object):
    """Updates an object, for which this client has no method."""
    path = f"{object.endpoint}/{object.name}"
    async with api.call_api(
        "PUT", version=object.version, namespace=object.namespace, url=path, content=json.dumps(object.raw)
    ) as response:
        return response.json()


@asynchronous
async def discovery(api, _):
    resources = {(resource["version"], resource["name"]) for resource in await api.api_resources()}
    for resource in [("v1", "configmaps"), ("coordination.k8s.io/v1", "leases"), ("wardle.example.com/v1beta1", "flunders")]:
        expect(resource in resources, True, f"{resource} among {resources}")
    # This client chooses the version itself, by its name.
    expect((await api.lookup_kind("fl"))[1:], ("flunders", True), "a short name")
    expect((await api.version())["major"], "1", "the version")


@asynchronous
async def objects(api, namespace):
    await create(api, config_map("one", namespace, {"a": "1"}))
    found = await ConfigMap.get("one", namespace, api=api)
    expect((found.data, bool(found.metadata.uid)), ({"a": "1"}, True), "a read")
    made = await create(api, flunder("one", namespace, "two"), FLUNDER)
    await made.refresh()
    expect(made.spec.flunderReference, "two", "a flunder")
    status = await refused(409, create(api, config_map("one", namespace)))
    expect(status["reason"], "AlreadyExists", "the reason")
    status = await refused(422, create(api, config_map("Not_A_Name", namespace)))
    expect(status["details"]["causes"][0]["field"], "metadata.name", "the field of an error")
    expect(await (await ConfigMap(config_map("nothing", namespace), api=api)).exists(), False, "a missing object")
    # It is found by its short name, in its preferred version.
    names = [found.name async for found in api.get("fl", namespace=namespace)]
    expect(names, ["one"], "flunders")


@asynchronous
async def pages(api, namespace):
    # This client always asks for pages of 100.
    await fill(api, namespace, 120)
    names = [item.name async for item in api.get("configmaps", namespace=namespace)]
    expect(names, [f"item-{i:03}" for i in range(120)], "names of all pages")
    even = [item.name async for item in api.get("configmaps", namespace=namespace, label_selector={"even": "true"})]
    expect(len(even), 60, "even objects")


@asynchronous
async def conflicts(api, namespace):
    one = await create(api, config_map("one", namespace, {"n": "0"}))
    other = await ConfigMap.get("one", namespace, api=api)
    await other.patch({"data": {"n": "1"}})
    one.raw["data"]["n"] = "2"
    status = await refused(409, replace(api, one))
    expect(status["reason"], "Conflict", "the reason")
    await one.refresh()
    one.raw["data"]["n"] = "2"
    expect((await replace(api, one))["data"]["n"], "2", "the second attempt")


@asynchronous
async def patches(api, namespace):
    one = await create(api, config_map("one", namespace, {"a": "1", "b": "2"}))
    await one.patch({"data": {"a": None, "c": "3"}})
    expect(one.data, {"b": "2", "c": "3"}, "a merge patch")
    await one.patch([{"op": "remove", "path": "/data/b"}], type="json")
    expect(one.data, {"c": "3"}, "a JSON patch")
    await refused(422, one.patch([{"op": "test", "path": "/data/c", "value": "4"}], type="json"))
    await one.label(color="red")
    await one.label("color-")
    await one.annotate(note="kept")
    expect((one.labels, one.annotations), ({}, {"note": "kept"}), "labels and annotations")

    async def patch(content_type, body, **params):
        async with api.call_api(
            "PATCH", version="v1", namespace=namespace, url="configmaps/one",
            content=json.dumps(body), headers={"Content-Type": content_type}, params=params,
        ) as response:
            return response.json()

    strategic = await patch("application/strategic-merge-patch+json", {"data": {"$patch": "replace", "d": "4"}})
    expect(strategic["data"], {"d": "4"}, "a strategic merge patch")

    def document(data):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": data}

    apply = "application/apply-patch+yaml"
    await patch(apply, document({"e": "5"}), fieldManager="first")
    status = await refused(409, patch(apply, document({"e": "6"}), fieldManager="second"))
    expect([cause["field"] for cause in status["details"]["causes"]], [".data.e"], "fields of the conflict")
    forced = await patch(apply, document({"e": "6"}), fieldManager="second", force="true")
    expect(forced["data"], {"d": "4", "e": "6"}, "a forced apply")


@asynchronous
async def status(api, namespace):
    own = await Namespace.get(namespace, api=api)
    condition = {
        "type": "Tried", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"
    }
    waiting = asyncio.create_task(own.wait("condition=Tried"))
    other = await Namespace.get(namespace, api=api)
    await other.patch({"status": {"conditions": [condition]}}, subresource="status")
    await waiting
    await own.patch({"status": None})
    expect([one.type for one in own.status.conditions], ["Tried"], "conditions after a patch of the object")


@asynchronous
async def deletion(api, namespace):
    await fill(api, namespace, 6)
    async with api.call_api(
        "DELETE", version="v1", namespace=namespace, url="configmaps", params={"labelSelector": "even=true"}
    ):
        pass
    held = await ConfigMap.get("item-001", namespace, api=api)
    await held.patch({"metadata": {"finalizers": ["example.com/wait"]}})
    await held.delete()
    await held.refresh()
    expect("deletionTimestamp" in held.metadata, True, "a deletionTimestamp")
    waiting = asyncio.create_task(held.wait("delete"))
    other = await ConfigMap.get("item-001", namespace, api=api)
    await other.patch({"metadata": {"finalizers": None}})
    await waiting
    left = [item.name async for item in api.get("configmaps", namespace=namespace)]
    expect(left, ["item-003", "item-005"], "what is left")


async def watched(api, namespace, since, wanted):
    """Reads as many events, over restarts of the server: a lost connection is resumed at the last version."""
    events = []
    while len(events) < len(wanted):
        try:
            async for kind, object in api.watch("configmaps", namespace=namespace, since=since):
                since = object.metadata.resourceVersion
                events.append((kind, object.name))
                if len(events) == len(wanted):
                    break
        except (httpx.HTTPError, kr8s.ServerError) as error:
            # Of a restart, and of a server that is not ready yet.
            if isinstance(error, kr8s.ServerError) and error.response.status_code not in (429, 500, 503):
                raise
    return events


async def watch_over(how, api, namespace):
    async with api.call_api("GET", version="v1", namespace=namespace, url="configmaps") as response:
        since = response.json()["metadata"]["resourceVersion"]
    wanted = [("ADDED", f"item-{i:03}") for i in range(10)]
    wanted += [("MODIFIED", "item-003"), ("ADDED", "last"), ("DELETED", "item-004"), ("DELETED", "last")]
    # A client of its own: the present one is used while the connections of both break.
    events = asyncio.create_task(watched(await kr8s.asyncio.api(kubeconfig=sys.argv[1]), namespace, since, wanted))
    await fill(api, namespace, 10)
    await asyncio.to_thread(ask, how)
    changed = await ConfigMap.get("item-003", namespace, api=api)
    await changed.patch({"data": {"i": "changed"}})
    last = await create(api, config_map("last", namespace))
    await (await ConfigMap.get("item-004", namespace, api=api)).delete()
    await asyncio.to_thread(ask, how)
    await last.delete()
    expect(await events, wanted, "events")


@asynchronous
async def watch_across_a_restart(api, namespace):
    await watch_over("restart", api, namespace)


@asynchronous
async def watch_across_a_crash(api, namespace):
    await watch_over("kill", api, namespace)


run(make_namespace)
