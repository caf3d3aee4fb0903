// The checks of the built-in kinds, over Protobuf: formats, discovery, metadata of other kinds, and what the libraries and
// tools around client-go do with Secrets, Events and Leases.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"strings"
	"sync"
	"time"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	aggregated "k8s.io/api/apidiscovery/v2"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"
)

var flunders = schema.GroupVersionResource{Group: "wardle.example.com", Version: "v1alpha1", Resource: "flunders"}

// Those of any server.
var schemas = []check{
	{"openapi", openAPI},
	{"round-trips", roundTrips},
}

var builtIn = []check{
	{"documents", documents},
	{"openapi", openAPI},
	{"round-trips", roundTrips},
	{"kinds", kinds},
	{"apply", applies},
	{"metadata-informers", metadataInformers},
	{"releases", releases},
	{"events", events},
	{"election", election},
}

// traffic has the formats of the bodies that clients sent and received since it was read last, each with a request.
type traffic struct {
	sync.Mutex
	formats map[string]string
}

type recorder struct {
	next    http.RoundTripper
	traffic *traffic
}

func (t *traffic) record(next http.RoundTripper) http.RoundTripper {
	return recorder{next, t}
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	r.traffic.Lock()
	defer r.traffic.Unlock()
	if r.traffic.formats == nil {
		r.traffic.formats = map[string]string{}
	}
	of := request.Method + " " + request.URL.String()
	// The body of a patch is in JSON or YAML always.
	if request.Body != nil && request.Method != http.MethodPatch {
		r.traffic.formats[request.Header.Get("Content-Type")] = of
	}
	if err == nil {
		r.traffic.formats[response.Header.Get("Content-Type")] = of
	}
	return response, err
}

// Whether there was traffic, and all of it in one format.
func (t *traffic) only(contentType string) error {
	t.Lock()
	defer t.Unlock()
	defer func() { t.formats = nil }()
	if len(t.formats) == 0 {
		return fmt.Errorf("no requests")
	}
	for format, of := range t.formats {
		if format != contentType && format != contentType+";stream=watch" {
			return fmt.Errorf("%s has a body of type %q", of, format)
		}
	}
	return nil
}

// Every document of discovery is the same in Protobuf and in JSON.
func documents(ctx context.Context, s *suite, _ string) error {
	types := runtime.NewScheme()
	meta.AddToGroupVersion(types, schema.GroupVersion{Version: "v1"})
	if err := aggregated.AddToScheme(types); err != nil {
		return err
	}
	decoder := serializer.NewCodecFactory(types).UniversalDeserializer()
	fetch := func(path, accept string, into runtime.Object, kind schema.GroupVersionKind) error {
		result := s.discovery.RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx)
		body, err := result.Raw()
		if err != nil {
			return err
		}
		if isProtobuf := bytes.HasPrefix(body, []byte("k8s\x00")); isProtobuf != strings.Contains(accept, "protobuf") {
			return fmt.Errorf("%s as %s begins with %q", path, accept, body[:10])
		}
		found, _, err := decoder.Decode(body, &kind, into)
		if err == nil && found != into {
			err = fmt.Errorf("%s is a %T", path, found)
		}
		into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		return err
	}
	const parameters = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, document := range []struct {
		path, kind, parameters string
		of                     func() runtime.Object
	}{
		{"/api", "APIVersions", "", func() runtime.Object { return &meta.APIVersions{} }},
		{"/api/v1", "APIResourceList", "", func() runtime.Object { return &meta.APIResourceList{} }},
		{"/apis", "APIGroupList", "", func() runtime.Object { return &meta.APIGroupList{} }},
		{"/apis/wardle.example.com", "APIGroup", "", func() runtime.Object { return &meta.APIGroup{} }},
		{"/apis/wardle.example.com/v1alpha1", "APIResourceList", "", func() runtime.Object { return &meta.APIResourceList{} }},
		{"/api", "APIGroupDiscoveryList", parameters, func() runtime.Object { return &aggregated.APIGroupDiscoveryList{} }},
		{"/apis", "APIGroupDiscoveryList", parameters, func() runtime.Object { return &aggregated.APIGroupDiscoveryList{} }},
	} {
		kind := schema.GroupVersionKind{Version: "v1", Kind: document.kind}
		if document.parameters != "" {
			kind = aggregated.SchemeGroupVersion.WithKind(document.kind)
		}
		json, protobuf := document.of(), document.of()
		if err := fetch(document.path, runtime.ContentTypeJSON+document.parameters, json, kind); err != nil {
			return err
		}
		if err := fetch(document.path, runtime.ContentTypeProtobuf+document.parameters, protobuf, kind); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(json, protobuf) {
			return fmt.Errorf("%s in JSON is\n%+v\nand in Protobuf\n%+v", document.path, json, protobuf)
		}
		if equality.Semantic.DeepEqual(json, document.of()) {
			return fmt.Errorf("%s is empty", document.path)
		}
	}
	// The traffic of discovery is not recorded.
	_, err := s.core.Namespaces().List(ctx, meta.ListOptions{})
	return err
}

// The documents of OpenAPI in Protobuf are those that are made of their JSON.
func openAPI(ctx context.Context, s *suite, _ string) error {
	type document interface {
		proto.Message
		YAMLValue(comment string) ([]byte, error)
	}
	compare := func(path, mediaType string, empty document, parse func([]byte) (document, error)) error {
		fetch := func(accept string) ([]byte, error) {
			return s.discovery.RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).Raw()
		}
		body, err := fetch("application/" + mediaType)
		if err != nil {
			return err
		}
		if err := proto.Unmarshal(body, empty); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		json, err := fetch(runtime.ContentTypeJSON)
		if err != nil {
			return err
		}
		parsed, err := parse(json)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		texts := [2]string{}
		for i, document := range []document{parsed, empty} {
			text, err := document.YAMLValue("")
			if err != nil {
				return err
			}
			// The spelling of extensions differs.
			text, err = yaml.YAMLToJSON(text)
			if err != nil {
				return err
			}
			texts[i] = strings.ReplaceAll(string(text), "},", "},\n")
		}
		if texts[0] != texts[1] {
			lines := [2][]string{strings.Split(texts[0], "\n"), strings.Split(texts[1], "\n")}
			for i := range min(len(lines[0]), len(lines[1])) {
				if lines[0][i] != lines[1][i] {
					return fmt.Errorf("%s in JSON has\n%s\nand in Protobuf\n%s", path, lines[0][i], lines[1][i])
				}
			}
			return fmt.Errorf("%s has %d parts in JSON and %d in Protobuf", path, len(lines[0]), len(lines[1]))
		}
		if len(texts[0]) < 10_000 {
			return fmt.Errorf("%s has %d bytes", path, len(texts[0]))
		}
		return nil
	}
	err := compare("/openapi/v2", "com.github.proto-openapi.spec.v2@v1.0+protobuf", &openapiv2.Document{},
		func(json []byte) (document, error) { return openapiv2.ParseDocument(json) })
	if err != nil {
		return err
	}
	paths, err := s.discovery.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	for path := range paths {
		err := compare("/openapi/v3/"+path, "com.github.proto-openapi.spec.v3@v1.0+protobuf", &openapiv3.Document{},
			func(json []byte) (document, error) { return openapiv3.ParseDocument(json) })
		if err != nil {
			return err
		}
	}
	// The traffic of discovery is not recorded.
	_, err = s.core.Namespaces().List(ctx, meta.ListOptions{})
	return err
}

// Objects of other kinds than ConfigMap, with bytes, times and a status.
func kinds(ctx context.Context, s *suite, namespace string) error {
	secret, err := s.core.Secrets(namespace).Create(ctx, &core.Secret{
		ObjectMeta: meta.ObjectMeta{Name: "one"},
		Type:       core.SecretTypeBasicAuth,
		Data:       map[string][]byte{"username": {0, 255, 10}},
		StringData: map[string]string{"password": "\u00e4\n"},
	}, meta.CreateOptions{FieldValidation: meta.FieldValidationStrict})
	if err != nil {
		return err
	}
	expected := map[string][]byte{"username": {0, 255, 10}, "password": []byte("\u00e4\n")}
	if !equality.Semantic.DeepEqual(secret.Data, expected) || secret.StringData != nil {
		return fmt.Errorf("the data is %v and %v", secret.Data, secret.StringData)
	}
	automount := false
	account, err := s.core.ServiceAccounts(namespace).Create(ctx, &core.ServiceAccount{
		ObjectMeta:                   meta.ObjectMeta{Name: "one"},
		Secrets:                      []core.ObjectReference{{Name: "a"}, {Name: "b"}},
		AutomountServiceAccountToken: &automount,
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	// A strategic merge patch, whose response is in Protobuf.
	account, err = s.core.ServiceAccounts(namespace).Patch(ctx, "one", types.StrategicMergePatchType,
		[]byte(`{"secrets":[{"name":"c"},{"name":"a","$patch":"delete"}]}`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, secret := range account.Secrets {
		names[secret.Name] = true
	}
	if !equality.Semantic.DeepEqual(names, map[string]bool{"b": true, "c": true}) || *account.AutomountServiceAccountToken {
		return fmt.Errorf("the account is %+v", account)
	}
	present, err := s.core.Namespaces().Get(ctx, namespace, meta.GetOptions{})
	if err != nil {
		return err
	}
	now := meta.NewTime(time.Unix(1700000000, 0))
	present.Status.Conditions = []core.NamespaceCondition{{Type: "Tried", Status: core.ConditionTrue, LastTransitionTime: now}}
	present, err = s.core.Namespaces().UpdateStatus(ctx, present, meta.UpdateOptions{})
	if err != nil {
		return err
	}
	if conditions := present.Status.Conditions; len(conditions) != 1 || !conditions[0].LastTransitionTime.Equal(&now) {
		return fmt.Errorf("the conditions are %+v", conditions)
	}
	// What the metadata says is the same in JSON.
	json, err := s.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, namespace, meta.GetOptions{})
	if err != nil {
		return err
	}
	var converted core.Namespace
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(json.Object, &converted); err != nil {
		return err
	}
	converted.TypeMeta = meta.TypeMeta{}
	if !equality.Semantic.DeepEqual(&converted, present) {
		return fmt.Errorf("in JSON it is\n%+v\nand in Protobuf\n%+v", converted, present)
	}
	return nil
}

// Server-side apply with typed configurations: the answer and the conflict are in Protobuf.
func applies(ctx context.Context, s *suite, namespace string) error {
	client := s.core.ConfigMaps(namespace)
	one := func(value string) *apply.ConfigMapApplyConfiguration {
		return apply.ConfigMap("one", namespace).WithData(map[string]string{"a": value})
	}
	applied, err := client.Apply(ctx, one("1"), meta.ApplyOptions{FieldManager: "first"})
	if err != nil {
		return err
	}
	extracted, err := apply.ExtractConfigMap(applied, "first")
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(extracted.Data, map[string]string{"a": "1"}) {
		return fmt.Errorf("what was applied is %v", extracted.Data)
	}
	_, err = client.Apply(ctx, one("2"), meta.ApplyOptions{FieldManager: "second"})
	if !errors.IsConflict(err) {
		return fmt.Errorf("the second manager has %v", err)
	}
	causes := err.(errors.APIStatus).Status().Details.Causes
	if len(causes) != 1 || causes[0].Type != meta.CauseTypeFieldManagerConflict || causes[0].Field != ".data.a" {
		return fmt.Errorf("the causes are %+v", causes)
	}
	applied, err = client.Apply(ctx, one("2"), meta.ApplyOptions{FieldManager: "second", Force: true})
	if err == nil && applied.Data["a"] != "2" {
		err = fmt.Errorf("data is %v", applied.Data)
	}
	return err
}

// Informers of the metadata of a kind with Protobuf and of one in another group, as the garbage collector has them.
func metadataInformers(ctx context.Context, s *suite, namespace string) error {
	other := s.dynamic.Resource(flunders).Namespace(namespace)
	create := func(name string) error {
		_, err := other.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"of": "metadata"}},
		}}, meta.CreateOptions{})
		if err == nil {
			_, err = s.core.ConfigMaps(namespace).Create(ctx, named(name, nil), meta.CreateOptions{})
		}
		return err
	}
	if err := create("early"); err != nil {
		return err
	}
	factory := metadatainformer.NewFilteredSharedInformerFactory(s.metadata, 0, namespace, nil)
	listers := map[schema.GroupVersionResource]cache.GenericLister{}
	for _, resource := range []schema.GroupVersionResource{configMaps, flunders} {
		listers[resource] = factory.ForResource(resource).Lister()
	}
	running, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(running.Done())
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the informer of %s was not filled", resource)
		}
	}
	if err := create("late"); err != nil {
		return err
	}
	if err := other.Delete(ctx, "early", meta.DeleteOptions{}); err != nil {
		return err
	}
	changed, err := s.metadata.Resource(flunders).Namespace(namespace).Patch(ctx, "late", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"a":"b"},"finalizers":["example.com/wait"]}}`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) {
		found, err := listers[flunders].List(labels.Everything())
		if err != nil || len(found) != 1 {
			return false, err
		}
		object := found[0].(*meta.PartialObjectMetadata)
		return equality.Semantic.DeepEqual(object.ObjectMeta, changed.ObjectMeta), nil
	})
	if err != nil {
		found, _ := listers[flunders].List(labels.Everything())
		return fmt.Errorf("%w: %+v, not %+v", err, found, changed)
	}
	err = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) {
		found, err := listers[configMaps].List(labels.Everything())
		return len(found) == 2, err
	})
	if err != nil {
		return err
	}
	// It ends when its finalizer is removed.
	_, err = s.metadata.Resource(flunders).Namespace(namespace).Patch(ctx, "late", types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/metadata/finalizers"}]`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	// The metadata client sends the options of a deletion in JSON.
	return other.Delete(ctx, "late", meta.DeleteOptions{})
}

// The releases of helm: its storage driver keeps each as a Secret, and selects them by labels.
func releases(ctx context.Context, s *suite, namespace string) error {
	client := s.core.Secrets(namespace)
	random := rand.New(rand.NewSource(1))
	release := func(version int, status string) (*core.Secret, error) {
		// A compressed release of some 130 KiB.
		content := make([]byte, 100_000)
		if _, err := random.Read(content); err != nil {
			return nil, err
		}
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		if _, err := writer.Write(content); err != nil {
			return nil, err
		}
		if err := writer.Close(); err != nil {
			return nil, err
		}
		return &core.Secret{
			ObjectMeta: meta.ObjectMeta{
				Name: fmt.Sprintf("sh.helm.release.v1.web.v%d", version),
				Labels: map[string]string{
					"name": "web", "owner": "helm", "status": status, "version": fmt.Sprint(version),
					"modifiedAt": fmt.Sprint(time.Now().Unix()),
				},
			},
			Type: "helm.sh/release.v1",
			Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
		}, nil
	}
	find := func(status string) ([]core.Secret, error) {
		selector := labels.Set{"owner": "helm", "name": "web"}
		if status != "" {
			selector["status"] = status
		}
		list, err := client.List(ctx, meta.ListOptions{LabelSelector: selector.AsSelector().String()})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	written := map[string][]byte{}
	// An installation and two upgrades, each written as pending first, and then without a resourceVersion.
	for version := 1; version <= 3; version++ {
		pending, err := release(version, "pending")
		if err != nil {
			return err
		}
		if _, err := client.Create(ctx, pending, meta.CreateOptions{}); err != nil {
			return err
		}
		if _, err := client.Create(ctx, pending, meta.CreateOptions{}); !errors.IsAlreadyExists(err) {
			return fmt.Errorf("version %d is created twice: %v", version, err)
		}
		before, err := find("deployed")
		if err != nil {
			return err
		}
		for i := range before {
			superseded := &core.Secret{
				ObjectMeta: meta.ObjectMeta{Name: before[i].Name, Labels: before[i].Labels},
				Type:       before[i].Type,
				Data:       before[i].Data,
			}
			superseded.Labels["status"] = "superseded"
			if _, err := client.Update(ctx, superseded, meta.UpdateOptions{}); err != nil {
				return err
			}
		}
		deployed := pending.DeepCopy()
		deployed.Labels["status"] = "deployed"
		if _, err := client.Update(ctx, deployed, meta.UpdateOptions{}); err != nil {
			return err
		}
		written[deployed.Name] = deployed.Data["release"]
		if now, err := find("deployed"); err != nil || len(now) != 1 || now[0].Name != deployed.Name {
			return fmt.Errorf("after version %d %d releases are deployed: %v", version, len(now), err)
		}
	}
	history, err := find("")
	if err != nil || len(history) != 3 {
		return fmt.Errorf("the history has %d releases: %v", len(history), err)
	}
	for _, secret := range history {
		if secret.Type != "helm.sh/release.v1" || !bytes.Equal(secret.Data["release"], written[secret.Name]) {
			return fmt.Errorf("%s has another content", secret.Name)
		}
		packed, err := base64.StdEncoding.DecodeString(string(secret.Data["release"]))
		if err != nil {
			return err
		}
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return err
		}
		if content, err := io.ReadAll(reader); err != nil || len(content) != 100_000 {
			return fmt.Errorf("%s has %d bytes: %v", secret.Name, len(content), err)
		}
	}
	// The type of a Secret does not change.
	other := history[0].DeepCopy()
	other.Type = core.SecretTypeOpaque
	if _, err := client.Update(ctx, other, meta.UpdateOptions{}); !errors.IsInvalid(err) {
		return fmt.Errorf("with another type it is %v", err)
	}
	for _, secret := range history {
		if _, err := client.Get(ctx, secret.Name, meta.GetOptions{}); err != nil {
			return err
		}
		if err := client.Delete(ctx, secret.Name, meta.DeleteOptions{}); err != nil {
			return err
		}
	}
	if left, err := find(""); err != nil || len(left) != 0 {
		return fmt.Errorf("%d releases are left: %v", len(left), err)
	}
	return nil
}

// A recorder of events, which counts what happens again in one event.
func events(ctx context.Context, s *suite, namespace string) error {
	object, err := s.core.ConfigMaps(namespace).Create(ctx, named("one", nil), meta.CreateOptions{})
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typed.EventSinkImpl{Interface: s.core.Events(namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, core.EventSource{Component: "client-go", Host: "here"})
	for range 3 {
		recorder.Event(object, core.EventTypeWarning, "Tried", "It was tried.")
	}
	selector := fields.Set{
		"involvedObject.name": "one", "involvedObject.uid": string(object.UID), "reason": "Tried", "type": "Warning",
		"reportingComponent": "client-go",
	}
	found := &core.EventList{}
	err = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) {
		var err error
		found, err = s.core.Events(namespace).List(ctx, meta.ListOptions{FieldSelector: selector.String()})
		return err == nil && len(found.Items) == 1 && found.Items[0].Count == 3, err
	})
	if err != nil {
		all, _ := s.core.Events(namespace).List(ctx, meta.ListOptions{})
		return fmt.Errorf("%w: %+v among %+v", err, found.Items, all.Items)
	}
	event := found.Items[0]
	if event.Message != "It was tried." || event.Source.Host != "here" || event.FirstTimestamp.IsZero() || !event.EventTime.IsZero() {
		return fmt.Errorf("the event is %+v", event)
	}
	// By the name of the object, as kubectl describe asks.
	searched, err := s.core.Events(namespace).Search(scheme.Scheme, object)
	if err == nil && len(searched.Items) != 1 {
		err = fmt.Errorf("%d events are found", len(searched.Items))
	}
	return err
}

// Two candidates elect a leader by a Lease: the second one leads when the first one releases it.
func election(ctx context.Context, s *suite, namespace string) error {
	leads := make(chan string, 2)
	candidate := func(ctx context.Context, name string) (<-chan struct{}, error) {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  meta.ObjectMeta{Name: "leader", Namespace: namespace},
				Client:     s.coordination,
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 50 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return nil, err
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			elector.Run(ctx)
		}()
		return done, nil
	}
	elected := func(expected string) error {
		select {
		case name := <-leads:
			if name != expected {
				return fmt.Errorf("%s leads", name)
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%s does not lead", expected)
		}
	}
	first, release := context.WithCancel(ctx)
	defer release()
	firstEnded, err := candidate(first, "first")
	if err != nil {
		return err
	}
	if err := elected("first"); err != nil {
		return err
	}
	second, end := context.WithCancel(ctx)
	defer end()
	secondEnded, err := candidate(second, "second")
	if err != nil {
		return err
	}
	release()
	<-firstEnded
	if err := elected("second"); err != nil {
		return err
	}
	lease, err := s.coordination.Leases(namespace).Get(ctx, "leader", meta.GetOptions{})
	if err != nil {
		return err
	}
	if *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions != 1 || lease.Spec.RenewTime.IsZero() {
		return fmt.Errorf("the lease is %+v", lease.Spec)
	}
	end()
	<-secondEnded
	return nil
}
