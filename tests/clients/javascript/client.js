// Drives wardle-server with the JavaScript package `@kubernetes/client-node`: typed clients of built-in kinds, clients of
// custom and of any objects, watches and informers. The argument is a kubeconfig; MODULES is the folder of the packages.
// Each check has a line of output; the Rust side is tests/src/client_program.rs.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const k8s = createRequire(`${process.env.MODULES}/`)('@kubernetes/client-node');

const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
const core = config.makeApiClient(k8s.CoreV1Api);
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const any = k8s.KubernetesObjectApi.makeApiClient(config);
const flunders = { group: 'wardle.example.com', version: 'v1beta1', plural: 'flunders' };
const { JsonPatch, MergePatch, StrategicMergePatch, ServerSideApply } = k8s.PatchStrategy;
const PATIENCE = 60_000;

const input = createInterface(process.stdin)[Symbol.asyncIterator]();

// Asks the test for something, such as `restart`, and waits until it is done.
async function ask(what) {
    console.log(what);
    assert.equal((await input.next()).value, 'done', `the test did not ${what}`);
}

function configMap(name, data, metadata) {
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data };
}

function flunder(namespace, name, reference, more) {
    return {
        apiVersion: 'wardle.example.com/v1beta1',
        kind: 'Flunder',
        metadata: { name, namespace },
        spec: { flunderReference: reference, referenceType: 'Flunder', ...more },
    };
}

async function fill(namespace, count) {
    for (let i = 0; i < count; i++) {
        const labels = { even: String(i % 2 === 0) };
        const body = configMap(item(i), { i: String(i) }, { labels });
        await core.createNamespacedConfigMap({ namespace, body });
    }
}

function item(i) {
    return `item-${String(i).padStart(3, '0')}`;
}

const namesOf = (list) => list.items.map((object) => object.metadata.name);

// The Status of a request that has to fail with this code and reason.
async function refused(code, reason, request) {
    try {
        await request;
    } catch (error) {
        if (!(error instanceof k8s.ApiException)) throw error;
        const status = typeof error.body === 'string' ? JSON.parse(error.body) : error.body;
        assert.deepEqual([error.code, status.reason], [code, reason], status.message);
        return status;
    }
    assert.fail(`a request did not fail with ${code}`);
}

const patchAs = (type) => k8s.setHeaderOptions('Content-Type', type);

const checks = {
    async discovery() {
        const groups = (await config.makeApiClient(k8s.ApisApi).getAPIVersions()).groups.map((group) => group.name);
        for (const name of ['coordination.k8s.io', 'events.k8s.io', 'wardle.example.com']) {
            assert(groups.includes(name), `${name} among ${groups}`);
        }
        const resources = (await core.getAPIResources()).resources;
        const namespaced = Object.fromEntries(resources.map((resource) => [resource.name, resource.namespaced]));
        assert.equal(namespaced.configmaps, true);
        assert.equal(namespaced['namespaces/status'], false);
        assert.equal((await config.makeApiClient(k8s.VersionApi).getCode()).major, '1');
    },

    async objects(namespace) {
        const created = await core.createNamespacedConfigMap({ namespace, body: configMap('one', { a: '1' }) });
        assert(created.metadata.uid && created.metadata.creationTimestamp instanceof Date);
        assert.deepEqual(await core.readNamespacedConfigMap({ name: 'one', namespace }), created);
        await custom.createNamespacedCustomObject({ namespace, body: flunder(namespace, 'one', 'two'), ...flunders });
        const found = await any.read(flunder(namespace, 'one'));
        assert.equal(found.spec.flunderReference, 'two');
        const secret = { metadata: { name: 'one' }, stringData: { word: 'sesame' } };
        const kept = await core.createNamespacedSecret({ namespace, body: secret });
        assert.deepEqual(kept.data, { word: 'c2VzYW1l' });
        const lease = { metadata: { name: 'one' }, spec: { holderIdentity: 'me', renewTime: new k8s.V1MicroTime() } };
        const held = await config.makeApiClient(k8s.CoordinationV1Api).createNamespacedLease({ namespace, body: lease });
        assert.equal(held.spec.holderIdentity, 'me');
        const event = {
            metadata: { name: 'one' },
            involvedObject: { kind: 'ConfigMap', name: 'one', namespace },
            reason: 'Tried',
            message: 'it was tried',
            type: 'Normal',
        };
        await core.createNamespacedEvent({ namespace, body: event });
        const fieldSelector = 'involvedObject.name=one,reason=Tried';
        const events = await core.listNamespacedEvent({ namespace, fieldSelector });
        assert.deepEqual(events.items.map((one) => one.message), ['it was tried']);
    },

    async refusals(namespace) {
        const create = (body, more) => core.createNamespacedConfigMap({ namespace, body, ...more });
        await refused(404, 'NotFound', core.readNamespacedConfigMap({ name: 'nothing', namespace }));
        await create(configMap('one'));
        await refused(409, 'AlreadyExists', create(configMap('one')));
        const status = await refused(422, 'Invalid', create(configMap('Not_A_Name')));
        assert.deepEqual(status.details.causes.map((cause) => cause.field), ['metadata.name']);
        const both = flunder(namespace, 'both', 'a', { fischerReference: 'b' });
        await refused(422, 'Invalid', custom.createNamespacedCustomObject({ namespace, body: both, ...flunders }));
        await create(configMap('dry'), { dryRun: 'All' });
        await refused(404, 'NotFound', core.readNamespacedConfigMap({ name: 'dry', namespace }));
        const unknown = flunder(namespace, 'strict', 'a', { bogus: 1 });
        const strict = { namespace, body: unknown, fieldValidation: 'Strict', ...flunders };
        await refused(400, 'BadRequest', custom.createNamespacedCustomObject(strict));
    },

    async pages(namespace) {
        await fill(namespace, 25);
        const names = [];
        const remaining = [];
        let _continue;
        do {
            const page = await core.listNamespacedConfigMap({ namespace, limit: 10, _continue });
            names.push(...namesOf(page));
            remaining.push(page.metadata.remainingItemCount);
            _continue = page.metadata._continue;
        } while (_continue);
        assert.deepEqual(names, Array.from({ length: 25 }, (_, i) => item(i)));
        assert.deepEqual(remaining, [15, 5, undefined]);
        const even = await core.listNamespacedConfigMap({ namespace, labelSelector: 'even=true' });
        assert.equal(even.items.length, 13);
        const first = await any.list('v1', 'ConfigMap', namespace, undefined, undefined, undefined, undefined, 'even', 2);
        assert.deepEqual(namesOf(first), [item(0), item(1)]);
    },

    // Four writers count in one object; none of their counts is lost.
    async conflicts(namespace) {
        const name = 'counter';
        const first = await core.createNamespacedConfigMap({ namespace, body: configMap(name, { n: '0' }) });
        const newer = structuredClone(first);
        newer.metadata.labels = { changed: 'yes' };
        await core.replaceNamespacedConfigMap({ name, namespace, body: newer });
        await refused(409, 'Conflict', core.replaceNamespacedConfigMap({ name, namespace, body: first }));
        const count = async () => {
            for (let written = 0; written < 10; ) {
                const body = await core.readNamespacedConfigMap({ name, namespace });
                body.data.n = String(Number(body.data.n) + 1);
                try {
                    await core.replaceNamespacedConfigMap({ name, namespace, body });
                    written += 1;
                } catch (error) {
                    if (error.code !== 409) throw error;
                }
            }
        };
        await Promise.all([count(), count(), count(), count()]);
        assert.equal((await core.readNamespacedConfigMap({ name, namespace })).data.n, '40');
    },

    async patches(namespace) {
        const name = 'one';
        await core.createNamespacedConfigMap({ namespace, body: configMap(name, { a: '1', b: '2' }) });
        const patch = (type, body) => core.patchNamespacedConfigMap({ name, namespace, body }, patchAs(type));
        assert.deepEqual((await patch(MergePatch, { data: { a: null, c: '3' } })).data, { b: '2', c: '3' });
        const test = { op: 'test', path: '/data/b', value: '2' };
        assert.deepEqual((await patch(JsonPatch, [test, { op: 'remove', path: '/data/b' }])).data, { c: '3' });
        await refused(422, 'Invalid', patch(JsonPatch, [test]));
        const replaced = await patch(StrategicMergePatch, { data: { $patch: 'replace', d: '4' } });
        assert.deepEqual(replaced.data, { d: '4' });
        // A list with a merge key.
        const account = { metadata: { name }, secrets: [{ name: 'a' }] };
        await core.createNamespacedServiceAccount({ namespace, body: account });
        const body = { secrets: [{ name: 'b' }] };
        const merged = await core.patchNamespacedServiceAccount({ name, namespace, body }, patchAs(StrategicMergePatch));
        assert.deepEqual(merged.secrets.map((secret) => secret.name).sort(), ['a', 'b']);
        // The kinds of a user have no strategic merge patches, as custom resources have none.
        await any.create(flunder(namespace, name, 'first'));
        const changed = flunder(namespace, name, 'second');
        const patchAny = (type) => any.patch(changed, undefined, undefined, undefined, undefined, type);
        await refused(415, 'UnsupportedMediaType', patchAny(StrategicMergePatch));
        assert.equal((await patchAny(MergePatch)).spec.flunderReference, 'second');
    },

    async apply(namespace) {
        const applyAs = (fieldManager, data, force) =>
            core.patchNamespacedConfigMap(
                { name: 'one', namespace, body: configMap('one', data), fieldManager, force },
                patchAs(ServerSideApply),
            );
        await applyAs('first', { a: '1', b: '1' });
        assert.deepEqual((await applyAs('second', { a: '1', c: '2' })).data, { a: '1', b: '1', c: '2' });
        const status = await refused(409, 'Conflict', applyAs('second', { b: '2' }));
        assert.deepEqual(status.details.causes.map((cause) => cause.field), ['.data.b']);
        // The second manager no longer has `a`, which the first still has, and `c`, which it had alone.
        const taken = await applyAs('second', { b: '2' }, true);
        assert.deepEqual(taken.data, { a: '1', b: '2' });
        const managers = taken.metadata.managedFields.map((entry) => [entry.manager, entry.operation]);
        assert.deepEqual(managers.sort(), [['first', 'Apply'], ['second', 'Apply']]);
        const applied = await any.patch(
            flunder(namespace, 'one', 'two'), undefined, undefined, 'first', undefined, ServerSideApply,
        );
        assert.equal(applied.spec.flunderReference, 'two');
    },

    // A namespace has conditions in its status; the status of a flunder is written apart from its spec.
    async status(namespace) {
        const condition = { type: 'Tried', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' };
        const body = { status: { conditions: [condition] } };
        const patched = await core.patchNamespaceStatus({ name: namespace, body }, patchAs(MergePatch));
        assert.deepEqual(patched.status.conditions.map((one) => one.type), ['Tried']);
        const present = await core.readNamespace({ name: namespace });
        present.status.conditions = undefined;
        present.metadata.annotations = { a: 'b' };
        const replaced = await core.replaceNamespace({ name: namespace, body: present });
        assert.deepEqual(replaced.status.conditions.map((one) => one.type), ['Tried']);
        const made = await any.create(flunder(namespace, 'one', 'two'));
        const changed = { ...made, spec: { ...made.spec, flunderReference: 'other' }, status: {} };
        const request = { namespace, name: 'one', body: changed, ...flunders };
        const written = await custom.replaceNamespacedCustomObjectStatus(request);
        assert.equal(written.spec.flunderReference, 'two');
        assert.deepEqual(written.status, {});
    },

    async deletion(namespace) {
        await fill(namespace, 6);
        const preconditions = { uid: '00000000-0000-0000-0000-000000000000' };
        const wrong = core.deleteNamespacedConfigMap({ name: item(0), namespace, body: { preconditions } });
        await refused(409, 'Conflict', wrong);
        await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: 'even=true' });
        const name = item(1);
        const body = { metadata: { finalizers: ['example.com/wait'] } };
        await core.patchNamespacedConfigMap({ name, namespace, body }, patchAs(MergePatch));
        await core.deleteNamespacedConfigMap({ name, namespace });
        const held = await core.readNamespacedConfigMap({ name, namespace });
        assert(held.metadata.deletionTimestamp instanceof Date);
        held.metadata.finalizers = undefined;
        await core.replaceNamespacedConfigMap({ name, namespace, body: held });
        const left = await core.listNamespacedConfigMap({ namespace });
        assert.deepEqual(namesOf(left), [item(3), item(5)]);
    },

    watchAcrossARestart: (namespace) => watchOver('restart', namespace),

    watchAcrossACrash: (namespace) => watchOver('kill', namespace),

    // An informer that is started again after a lost connection, as its documentation says.
    async informer(namespace) {
        await fill(namespace, 5);
        const path = `/api/v1/namespaces/${namespace}/configmaps`;
        const informer = k8s.makeInformer(config, path, () => core.listNamespacedConfigMap({ namespace }));
        const events = new Queue();
        for (const kind of ['add', 'update', 'delete']) {
            informer.on(kind, (object) => events.push(`${kind} ${object.metadata.name}`));
        }
        const retries = new Set();
        informer.on('error', () => {
            const retry = setTimeout(() => informer.start(), 100);
            retries.add(retry);
        });
        await informer.start();
        for (let i = 0; i < 5; i++) assert.equal(await events.next(), `add ${item(i)}`);
        await ask('restart');
        await core.createNamespacedConfigMap({ namespace, body: configMap('later') });
        assert.equal(await events.next(), 'add later');
        await core.deleteNamespacedConfigMap({ name: item(2), namespace });
        assert.equal(await events.next(), `delete ${item(2)}`);
        assert.equal(informer.list(namespace).length, 5);
        await informer.stop();
        retries.forEach(clearTimeout);
    },
};

// Events in their order, for one reader.
class Queue {
    events = [];
    waiting = undefined;

    push(event) {
        this.events.push(event);
        this.waiting?.();
    }

    async next() {
        while (this.events.length === 0) {
            await withTimeout(new Promise((resolve) => (this.waiting = resolve)), 'an event did not come');
        }
        return this.events.shift();
    }
}

async function withTimeout(promise, message) {
    let timer;
    const timeout = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(message)), PATIENCE);
    });
    return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}

// Reads this many events after a version, over restarts of the server: a lost connection is resumed.
async function watched(namespace, version, count) {
    const events = [];
    const watch = new k8s.Watch(config);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    while (events.length < count) {
        let error;
        await new Promise((resolve) => {
            const started = watch.watch(
                path,
                { resourceVersion: version },
                async (kind, object) => {
                    version = object.metadata.resourceVersion;
                    events.push(`${kind} ${object.metadata.name}`);
                    if (events.length === count) (await started).abort();
                },
                (reason) => {
                    error = reason;
                    resolve();
                },
            );
        });
        // Without a code: a connection that broke. 429 and 503 are of a server that is not ready yet.
        if (error?.statusCode && ![429, 500, 503].includes(error.statusCode)) throw error;
    }
    return events;
}

async function watchOver(how, namespace) {
    const version = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
    const wanted = Array.from({ length: 10 }, (_, i) => `ADDED ${item(i)}`);
    wanted.push(`MODIFIED ${item(3)}`, 'ADDED last', `DELETED ${item(4)}`, 'DELETED last');
    const events = withTimeout(watched(namespace, version, wanted.length), 'events did not come');
    await fill(namespace, 10);
    await ask(how);
    const body = { data: { i: 'changed' } };
    await core.patchNamespacedConfigMap({ name: item(3), namespace, body }, patchAs(MergePatch));
    await core.createNamespacedConfigMap({ namespace, body: configMap('last') });
    await core.deleteNamespacedConfigMap({ name: item(4), namespace });
    await ask(how);
    await core.deleteNamespacedConfigMap({ name: 'last', namespace });
    assert.deepEqual(await events, wanted);
}

for (const [name, run] of Object.entries(checks)) {
    try {
        const body = { metadata: { generateName: `${name.toLowerCase()}-` } };
        const namespace = await core.createNamespace({ body });
        await run(namespace.metadata.name);
        console.log(`${name}: ok`);
    } catch (error) {
        console.log(`${name}: ${error.stack}`, error.cause ?? '');
        process.exitCode = 1;
    }
}
process.exit();
