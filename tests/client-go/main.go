// Drives a server with client-go: typed, dynamic and metadata clients, discovery, pages, watches and informers. The
// arguments are a kubeconfig and what the server serves: `core-kinds`, the kinds of tests/ports/core, by which typed clients
// speak JSON, `built-in`, the built-in kinds and those of wardle, by which they speak Protobuf, or `schemas`, any kinds, whose
// documents are read. Each check has a line of output; when one failed, the program ends with 1.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// suite is what every check has: the clients of one server.
type suite struct {
	config       *rest.Config
	core         typed.CoreV1Interface
	coordination coordination.CoordinationV1Interface
	dynamic      dynamic.Interface
	metadata     metadata.Interface
	discovery    *discovery.DiscoveryClient
	// What was sent and received by the typed clients and by the metadata client.
	traffic *traffic
}

// check is one check: its name, and what it does in a namespace of its own.
type check struct {
	name string
	run  func(ctx context.Context, s *suite, namespace string) error
}

// Those that need no other kind than ConfigMap.
var common = []check{
	{"errors", refusals},
	{"conflicts", conflicts},
	{"patches", patches},
	{"pages", pages},
	{"watch", watches},
	{"informers", informers},
	{"metadata", partial},
	{"deletion", deletion},
}

var coreKinds = []check{
	{"discovery", discover},
	{"versions", versions},
	{"status", status},
}

func main() {
	failed := false
	checks, contentType := append(coreKinds, common...), runtime.ContentTypeJSON
	switch os.Args[2] {
	case "built-in":
		checks, contentType = append(builtIn, common...), runtime.ContentTypeProtobuf
	case "schemas":
		checks, contentType = schemas, runtime.ContentTypeProtobuf
	}
	s, err := connect(os.Args[1], contentType)
	if err != nil {
		fmt.Println("connect:", err)
		os.Exit(1)
	}
	for _, check := range checks {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		namespace, err := s.core.Namespaces().Create(ctx, &core.Namespace{
			ObjectMeta: meta.ObjectMeta{GenerateName: check.name + "-"},
		}, meta.CreateOptions{})
		if err == nil {
			err = check.run(ctx, s, namespace.Name)
		}
		cancel()
		if err == nil {
			err = s.traffic.only(contentType)
		}
		if err != nil {
			fmt.Printf("%s: %v\n", check.name, err)
			failed = true
		} else {
			fmt.Printf("%s: ok\n", check.name)
		}
	}
	if failed {
		os.Exit(1)
	}
}

func connect(kubeconfig, contentType string) (*suite, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	s := &suite{config: config, traffic: &traffic{}}
	// As controllers are configured, and as newer releases do by themselves.
	ofTyped := rest.CopyConfig(config)
	ofTyped.Wrap(s.traffic.record)
	ofTyped.ContentType = contentType
	if contentType != runtime.ContentTypeJSON {
		ofTyped.AcceptContentTypes = contentType + "," + runtime.ContentTypeJSON
	}
	if s.core, err = typed.NewForConfig(ofTyped); err != nil {
		return nil, err
	}
	if s.coordination, err = coordination.NewForConfig(ofTyped); err != nil {
		return nil, err
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	ofMetadata := rest.CopyConfig(config)
	if contentType != runtime.ContentTypeJSON {
		ofMetadata.Wrap(s.traffic.record)
	}
	if s.metadata, err = metadata.NewForConfig(ofMetadata); err != nil {
		return nil, err
	}
	s.discovery, err = discovery.NewDiscoveryClientForConfig(config)
	return s, err
}

func discover(_ context.Context, s *suite, _ string) error {
	groups, resources, err := s.discovery.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	if groups[0].Name != "" || groups[0].PreferredVersion.Version != "v1" || len(groups[0].Versions) != 2 {
		return fmt.Errorf("the core group is shown as %+v", groups[0])
	}
	names := map[string]meta.APIResource{}
	for _, list := range resources {
		if list.GroupVersion == "v1" {
			for _, resource := range list.APIResources {
				names[resource.Name] = resource
			}
		}
	}
	for _, name := range []string{"configmaps", "nodes", "nodes/status", "namespaces"} {
		if _, found := names[name]; !found {
			return fmt.Errorf("%s is missing among %v", name, names)
		}
	}
	if names["nodes"].Namespaced || !names["configmaps"].Namespaced {
		return fmt.Errorf("scopes are wrong: %v", names)
	}
	grouped, err := restmapper.GetAPIGroupResources(s.discovery)
	if err != nil {
		return err
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(grouped), s.discovery, nil)
	found, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "cm"})
	if err != nil || found != configMaps {
		return fmt.Errorf("cm stands for %v, %v", found, err)
	}
	if _, err := s.discovery.OpenAPIV3().Paths(); err != nil {
		return err
	}
	_, err = s.discovery.OpenAPISchema()
	return err
}

func named(name string, data map[string]string) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name}, Data: data}
}

func refusals(ctx context.Context, s *suite, namespace string) error {
	client := s.core.ConfigMaps(namespace)
	if _, err := client.Get(ctx, "nothing", meta.GetOptions{}); !errors.IsNotFound(err) {
		return fmt.Errorf("get of nothing: %v", err)
	}
	if _, err := client.Create(ctx, named("one", nil), meta.CreateOptions{}); err != nil {
		return err
	}
	if _, err := client.Create(ctx, named("one", nil), meta.CreateOptions{}); !errors.IsAlreadyExists(err) {
		return fmt.Errorf("create of the same: %v", err)
	}
	_, err := client.Create(ctx, named("Not_A_Name", nil), meta.CreateOptions{})
	if !errors.IsInvalid(err) {
		return fmt.Errorf("create with a bad name: %v", err)
	}
	causes := err.(errors.APIStatus).Status().Details.Causes
	if len(causes) != 1 || causes[0].Field != "metadata.name" || causes[0].Type != meta.CauseTypeFieldValueInvalid {
		return fmt.Errorf("causes of a bad name: %+v", causes)
	}
	_, err = s.core.ConfigMaps("no-such-namespace").Create(ctx, named("one", nil), meta.CreateOptions{})
	if !errors.IsNotFound(err) {
		return fmt.Errorf("create in a namespace that is not there: %v", err)
	}
	_, err = s.core.PodTemplates(namespace).List(ctx, meta.ListOptions{})
	if !errors.IsNotFound(err) {
		return fmt.Errorf("list of a kind that is not served: %v", err)
	}
	_, err = client.Create(ctx, named("dry", nil), meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
	if err != nil {
		return err
	}
	if _, err = client.Get(ctx, "dry", meta.GetOptions{}); !errors.IsNotFound(err) {
		return fmt.Errorf("get after a dry run: %v", err)
	}
	return nil
}

// Eight writers count in one object; none of their counts is lost.
func conflicts(ctx context.Context, s *suite, namespace string) error {
	client := s.core.ConfigMaps(namespace)
	first, err := client.Create(ctx, named("counter", map[string]string{"n": "0"}), meta.CreateOptions{})
	if err != nil {
		return err
	}
	second := first.DeepCopy()
	second.Data["n"] = "0"
	second.Labels = map[string]string{"changed": "yes"}
	if _, err = client.Update(ctx, second, meta.UpdateOptions{}); err != nil {
		return err
	}
	if _, err = client.Update(ctx, first, meta.UpdateOptions{}); !errors.IsConflict(err) {
		return fmt.Errorf("update of an old object: %v", err)
	}
	const writers, each = 8, 10
	results := make(chan error, writers)
	backoff := wait.Backoff{Duration: 5 * time.Millisecond, Factor: 1, Jitter: 3, Steps: 1000}
	for range writers {
		go func() {
			for range each {
				err := retry.OnError(backoff, errors.IsConflict, func() error {
					present, err := client.Get(ctx, "counter", meta.GetOptions{})
					if err != nil {
						return err
					}
					n, err := strconv.Atoi(present.Data["n"])
					if err != nil {
						return err
					}
					present.Data["n"] = strconv.Itoa(n + 1)
					_, err = client.Update(ctx, present, meta.UpdateOptions{})
					return err
				})
				if err != nil {
					results <- err
					return
				}
			}
			results <- nil
		}()
	}
	for range writers {
		if err := <-results; err != nil {
			return err
		}
	}
	present, err := client.Get(ctx, "counter", meta.GetOptions{})
	if err == nil && present.Data["n"] != strconv.Itoa(writers*each) {
		return fmt.Errorf("%d counted, %s kept", writers*each, present.Data["n"])
	}
	return err
}

func patches(ctx context.Context, s *suite, namespace string) error {
	client := s.core.ConfigMaps(namespace)
	if _, err := client.Create(ctx, named("one", map[string]string{"a": "1", "b": "2"}), meta.CreateOptions{}); err != nil {
		return err
	}
	merged, err := client.Patch(ctx, "one", types.MergePatchType, []byte(`{"data":{"a":null,"c":"3"}}`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(merged.Data, map[string]string{"b": "2", "c": "3"}) {
		return fmt.Errorf("merged to %v", merged.Data)
	}
	patched, err := client.Patch(ctx, "one", types.JSONPatchType,
		[]byte(`[{"op":"test","path":"/data/b","value":"2"},{"op":"remove","path":"/data/b"}]`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(patched.Data, map[string]string{"c": "3"}) {
		return fmt.Errorf("patched to %v", patched.Data)
	}
	_, err = client.Patch(ctx, "one", types.JSONPatchType, []byte(`[{"op":"test","path":"/data/c","value":"4"}]`), meta.PatchOptions{})
	if !errors.IsInvalid(err) {
		return fmt.Errorf("a test that does not hold: %v", err)
	}
	return nil
}

func fill(ctx context.Context, client typed.ConfigMapInterface, count int) error {
	for i := range count {
		object := named(fmt.Sprintf("item-%03d", i), map[string]string{"i": strconv.Itoa(i)})
		object.Labels = map[string]string{"even": strconv.FormatBool(i%2 == 0)}
		if _, err := client.Create(ctx, object, meta.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func pages(ctx context.Context, s *suite, namespace string) error {
	client := s.core.ConfigMaps(namespace)
	if err := fill(ctx, client, 35); err != nil {
		return err
	}
	calls, seen := 0, map[string]bool{}
	lister := pager.New(func(ctx context.Context, options meta.ListOptions) (runtime.Object, error) {
		calls++
		return client.List(ctx, options)
	})
	lister.PageSize = 10
	err := lister.EachListItem(ctx, meta.ListOptions{}, func(object runtime.Object) error {
		seen[object.(*core.ConfigMap).Name] = true
		return nil
	})
	if err != nil {
		return err
	}
	if len(seen) != 35 || calls != 4 {
		return fmt.Errorf("%d objects in %d pages", len(seen), calls)
	}
	even, err := client.List(ctx, meta.ListOptions{LabelSelector: "even=true"})
	if err == nil && len(even.Items) != 18 {
		err = fmt.Errorf("%d even objects", len(even.Items))
	}
	return err
}

// Reads the next event, which has to be this one.
func expect(ctx context.Context, events watch.Interface, kind watch.EventType, name string) error {
	select {
	case event := <-events.ResultChan():
		object, ok := event.Object.(*core.ConfigMap)
		if event.Type != kind || !ok || object.Name != name {
			return fmt.Errorf("%s of %s was expected, %+v came", kind, name, event)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s of %s did not come", kind, name)
	}
}

func watches(ctx context.Context, s *suite, namespace string) error {
	client := s.core.ConfigMaps(namespace)
	list, err := client.List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	created, err := client.Create(ctx, named("one", nil), meta.CreateOptions{})
	if err != nil {
		return err
	}
	events, err := client.Watch(ctx, meta.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer events.Stop()
	if err := expect(ctx, events, watch.Added, "one"); err != nil {
		return err
	}
	created.Data = map[string]string{"a": "b"}
	if _, err := client.Update(ctx, created, meta.UpdateOptions{}); err != nil {
		return err
	}
	if err := expect(ctx, events, watch.Modified, "one"); err != nil {
		return err
	}
	if err := client.Delete(ctx, "one", meta.DeleteOptions{}); err != nil {
		return err
	}
	return expect(ctx, events, watch.Deleted, "one")
}

// Two informers, the second one late, end with what a list shows, and have told their handlers of it.
func informers(ctx context.Context, s *suite, namespace string) error {
	client := s.core.ConfigMaps(namespace)
	if err := fill(ctx, client, 20); err != nil {
		return err
	}
	start := func() (cache.SharedIndexInformer, *told) {
		informer := cache.NewSharedIndexInformer(
			cache.NewListWatchFromClient(s.core.RESTClient(), "configmaps", namespace, fields.Everything()),
			&core.ConfigMap{}, 0, cache.Indexers{"even": func(object any) ([]string, error) {
				return []string{object.(*core.ConfigMap).Labels["even"]}, nil
			}})
		told := &told{names: map[string]string{}}
		informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    told.set,
			UpdateFunc: func(_, object any) { told.set(object) },
			DeleteFunc: told.remove,
		})
		go informer.Run(ctx.Done())
		return informer, told
	}
	early, toldEarly := start()
	if !cache.WaitForCacheSync(ctx.Done(), early.HasSynced) {
		return fmt.Errorf("the informer was not filled")
	}
	for i := range 20 {
		name := fmt.Sprintf("item-%03d", i)
		var err error
		switch i % 3 {
		case 0:
			err = client.Delete(ctx, name, meta.DeleteOptions{})
		case 1:
			_, err = client.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"i":"changed"},"metadata":{"labels":{"even":"changed"}}}`), meta.PatchOptions{})
		}
		if err != nil {
			return err
		}
	}
	late, toldLate := start()
	list, err := client.List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for name, one := range map[string]struct {
		informer cache.SharedIndexInformer
		told     *told
	}{"early": {early, toldEarly}, "late": {late, toldLate}} {
		err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) {
			return holds(one.informer, list.Items) && one.told.holds(list.Items), nil
		})
		if err != nil {
			return fmt.Errorf("the %s informer has %v, the list %d: %w", name, one.informer.GetStore().ListKeys(), len(list.Items), err)
		}
		changed, err := one.informer.GetIndexer().ByIndex("even", "changed")
		if err != nil || len(changed) != 7 {
			return fmt.Errorf("the %s informer has %d changed objects in its index, %v", name, len(changed), err)
		}
	}
	return nil
}

func holds(informer cache.SharedIndexInformer, items []core.ConfigMap) bool {
	if len(informer.GetStore().ListKeys()) != len(items) {
		return false
	}
	for i := range items {
		object, found, err := informer.GetStore().Get(&items[i])
		if err != nil || !found || !equality.Semantic.DeepEqual(object, &items[i]) {
			return false
		}
	}
	return true
}

// told is what a handler of an informer was told: resource versions by names.
type told struct {
	sync.Mutex
	names map[string]string
}

func (t *told) set(object any) {
	t.Lock()
	defer t.Unlock()
	t.names[object.(*core.ConfigMap).Name] = object.(*core.ConfigMap).ResourceVersion
}

func (t *told) remove(object any) {
	t.Lock()
	defer t.Unlock()
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	delete(t.names, object.(*core.ConfigMap).Name)
}

func (t *told) holds(items []core.ConfigMap) bool {
	t.Lock()
	defer t.Unlock()
	if len(t.names) != len(items) {
		return false
	}
	for i := range items {
		if t.names[items[i].Name] != items[i].ResourceVersion {
			return false
		}
	}
	return true
}

// The other version, which has data under another name.
func versions(ctx context.Context, s *suite, namespace string) error {
	older := s.dynamic.Resource(schema.GroupVersionResource{Version: "v1beta1", Resource: "configmaps"}).Namespace(namespace)
	_, err := older.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1beta1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "one"},
		"values":   map[string]any{"wall": "white"},
	}}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	newer, err := s.core.ConfigMaps(namespace).Get(ctx, "one", meta.GetOptions{})
	if err != nil {
		return err
	}
	if newer.Data["wall"] != "white" {
		return fmt.Errorf("data is %v", newer.Data)
	}
	newer.Data["wall"] = "blue"
	if _, err := s.core.ConfigMaps(namespace).Update(ctx, newer, meta.UpdateOptions{}); err != nil {
		return err
	}
	found, err := older.Get(ctx, "one", meta.GetOptions{})
	if err != nil {
		return err
	}
	if color, _, err := unstructured.NestedString(found.Object, "values", "wall"); err != nil || color != "blue" {
		return fmt.Errorf("values are %v, %v", found.Object["values"], err)
	}
	return nil
}

func partial(ctx context.Context, s *suite, namespace string) error {
	if err := fill(ctx, s.core.ConfigMaps(namespace), 3); err != nil {
		return err
	}
	client := s.metadata.Resource(configMaps).Namespace(namespace)
	list, err := client.List(ctx, meta.ListOptions{LabelSelector: "even=true"})
	if err != nil {
		return err
	}
	if len(list.Items) != 2 || list.Items[0].Name != "item-000" || list.Items[0].UID == "" {
		return fmt.Errorf("the list is %+v", list.Items)
	}
	one, err := client.Patch(ctx, "item-001", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), meta.PatchOptions{})
	if err == nil && one.Annotations["a"] != "b" {
		err = fmt.Errorf("annotations are %v", one.Annotations)
	}
	return err
}

func status(ctx context.Context, s *suite, namespace string) error {
	client := s.core.Nodes()
	node, err := client.Create(ctx, &core.Node{
		ObjectMeta: meta.ObjectMeta{Name: namespace},
		Status:     core.NodeStatus{Phase: core.NodeRunning},
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	if node.Status.Phase != "" {
		return fmt.Errorf("a create set the phase %q", node.Status.Phase)
	}
	node.Status.Phase = core.NodeRunning
	node.Spec.Unschedulable = true
	node, err = client.UpdateStatus(ctx, node, meta.UpdateOptions{})
	if err != nil {
		return err
	}
	if node.Status.Phase != core.NodeRunning || node.Spec.Unschedulable {
		return fmt.Errorf("after a status update: %+v %+v", node.Spec, node.Status)
	}
	node.Spec.Unschedulable = true
	node.Status.Phase = ""
	node, err = client.Update(ctx, node, meta.UpdateOptions{})
	if err != nil {
		return err
	}
	if node.Status.Phase != core.NodeRunning || !node.Spec.Unschedulable {
		return fmt.Errorf("after an update: %+v %+v", node.Spec, node.Status)
	}
	return client.Delete(ctx, namespace, meta.DeleteOptions{})
}

func deletion(ctx context.Context, s *suite, namespace string) error {
	client := s.core.ConfigMaps(namespace)
	if err := fill(ctx, client, 6); err != nil {
		return err
	}
	wrong := types.UID("00000000-0000-0000-0000-000000000000")
	err := client.Delete(ctx, "item-000", meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &wrong}})
	if !errors.IsConflict(err) {
		return fmt.Errorf("delete with another uid: %v", err)
	}
	err = client.DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{LabelSelector: "even=true"})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, "item-001", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/wait"]}}`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	if err = client.Delete(ctx, "item-001", meta.DeleteOptions{}); err != nil {
		return err
	}
	held, err := client.Get(ctx, "item-001", meta.GetOptions{})
	if err != nil {
		return err
	}
	if held.DeletionTimestamp == nil {
		return fmt.Errorf("the object with a finalizer has no deletionTimestamp")
	}
	held.Finalizers = nil
	if _, err = client.Update(ctx, held, meta.UpdateOptions{}); err != nil {
		return err
	}
	left, err := client.List(ctx, meta.ListOptions{})
	if err == nil && (len(left.Items) != 2 || left.Items[0].Name != "item-003") {
		err = fmt.Errorf("left are %+v", left.Items)
	}
	return err
}
