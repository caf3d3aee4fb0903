// Drives CustomResourceDefinitions and APIServices with Kubernetes' own generated clients, as they are without any settings: they send
// Protobuf. Those of APIServices are in no package of Debian; a REST client with a type of its own stands for them. The argument is
// a kubeconfig. Each check has a line of output; when one failed, the program ends with 1.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apply "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// suite is what every check has.
type suite struct {
	config      *rest.Config
	definitions typed.CustomResourceDefinitionInterface
	all         clientset.Interface
	traffic     *traffic
}

// traffic has the requests whose bodies, sent or received, were of another format than Protobuf.
type traffic struct {
	sync.Mutex
	count int
	other []string
}

// recorder notes the formats of what passes.
type recorder struct {
	next    http.RoundTripper
	traffic *traffic
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	r.traffic.Lock()
	defer r.traffic.Unlock()
	note := func(header http.Header) {
		r.traffic.count++
		if format := header.Get("Content-Type"); !strings.HasPrefix(format, protobuf) {
			r.traffic.other = append(r.traffic.other, fmt.Sprintf("%s %s: %q", request.Method, request.URL, format))
		}
	}
	// Patches are in JSON or YAML.
	if request.Body != nil && request.Method != http.MethodPatch {
		note(request.Header)
	}
	if err == nil {
		note(response.Header)
	}
	return response, err
}

// only fails if there was no traffic, or some in another format.
func (t *traffic) only() error {
	t.Lock()
	defer t.Unlock()
	if t.count == 0 || len(t.other) > 0 {
		return fmt.Errorf("%d bodies, not in Protobuf: %v", t.count, t.other)
	}
	t.count = 0
	return nil
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		panic(err)
	}
	config.QPS = -1
	s := &suite{config: config, traffic: &traffic{}}
	recorded := rest.CopyConfig(config)
	recorded.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next, s.traffic} })
	if s.all, err = clientset.NewForConfig(recorded); err != nil {
		panic(err)
	}
	s.definitions = s.all.ApiextensionsV1().CustomResourceDefinitions()
	failed := false
	for _, check := range []struct {
		name string
		run  func(ctx context.Context, s *suite) error
	}{
		{"life", life},
		{"every-field", everyField},
		{"apply", applies},
		{"conflicts", conflicts},
		{"informers", informers},
		{"refusals", refusals},
		{"collection", collection},
		{"apiservices", services},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := check.run(ctx, s)
		cancel()
		if err == nil {
			err = s.traffic.only()
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

func named(plural, kind string) *extensions.CustomResourceDefinition {
	group := plural + ".go.example.com"
	preserve := true
	return &extensions.CustomResourceDefinition{
		ObjectMeta: meta.ObjectMeta{Name: plural + "." + group, Labels: map[string]string{"of": "go"}},
		Spec: extensions.CustomResourceDefinitionSpec{
			Group: group,
			Scope: extensions.NamespaceScoped,
			Names: extensions.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []extensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &extensions.CustomResourceValidation{OpenAPIV3Schema: &extensions.JSONSchemaProps{
					Type: "object",
					Properties: map[string]extensions.JSONSchemaProps{
						"spec": {Type: "object", XPreserveUnknownFields: &preserve, Properties: map[string]extensions.JSONSchemaProps{
							"size": {Type: "integer", Default: &extensions.JSON{Raw: []byte("3")}},
						}},
					},
				}},
			}},
		},
	}
}

func isTrue(of *extensions.CustomResourceDefinition, kind extensions.CustomResourceDefinitionConditionType) bool {
	for _, condition := range of.Status.Conditions {
		if condition.Type == kind {
			return condition.Status == extensions.ConditionTrue
		}
	}
	return false
}

// next waits for an event of a watch that is as it should be.
func next(events watch.Interface, what string, is func(watch.Event, *extensions.CustomResourceDefinition) bool) error {
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return fmt.Errorf("the watch ended before %s", what)
			}
			if object, ok := event.Object.(*extensions.CustomResourceDefinition); ok && is(event, object) {
				return nil
			}
			if event.Type == watch.Error {
				return errors.FromObject(event.Object)
			}
		case <-time.After(30 * time.Second):
			return fmt.Errorf("no event: %s", what)
		}
	}
}

// life creates, watches, updates, patches and deletes a definition, and an object of it.
func life(ctx context.Context, s *suite) error {
	list, err := s.definitions.List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	events, err := s.definitions.Watch(ctx, meta.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "of=go"})
	if err != nil {
		return err
	}
	defer events.Stop()
	made, err := s.definitions.Create(ctx, named("lives", "Life"), meta.CreateOptions{})
	if err != nil {
		return err
	}
	if made.UID == "" || made.Spec.Names.ListKind != "LifeList" || made.Spec.Conversion.Strategy != extensions.NoneConverter {
		return fmt.Errorf("made as %+v", made)
	}
	if err := next(events, "the creation", func(event watch.Event, of *extensions.CustomResourceDefinition) bool {
		return event.Type == watch.Added && of.UID == made.UID
	}); err != nil {
		return err
	}
	if err := next(events, "the kind is served", func(_ watch.Event, of *extensions.CustomResourceDefinition) bool {
		return isTrue(of, extensions.Established)
	}); err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	resource := objects.Resource(schema.GroupVersionResource{Group: made.Spec.Group, Version: "v1", Resource: "lives"}).Namespace("default")
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": made.Spec.Group + "/v1", "kind": "Life", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"other": "kept"},
	}}
	created, err := resource.Create(ctx, object, meta.CreateOptions{})
	if err != nil {
		return err
	}
	if spec := created.Object["spec"]; !equality.Semantic.DeepEqual(spec, map[string]any{"other": "kept", "size": int64(3)}) {
		return fmt.Errorf("an object has %v", spec)
	}
	for {
		present, err := s.definitions.Get(ctx, made.Name, meta.GetOptions{})
		if err != nil {
			return err
		}
		present.Spec.Versions[0].AdditionalPrinterColumns = []extensions.CustomResourceColumnDefinition{{Name: "Size", Type: "integer", JSONPath: ".spec.size"}}
		present.Annotations = map[string]string{"updated": "yes"}
		_, err = s.definitions.Update(ctx, present, meta.UpdateOptions{})
		if errors.IsConflict(err) {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	merged, err := s.definitions.Patch(ctx, made.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"merged":"yes"}}}`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	if merged.Annotations["updated"] != "yes" || merged.Annotations["merged"] != "yes" || merged.Generation != 2 ||
		len(merged.Spec.Versions[0].AdditionalPrinterColumns) != 1 {
		return fmt.Errorf("patched to %+v", merged)
	}
	patched, err := s.definitions.Patch(ctx, made.Name, types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/annotations/merged"}]`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	if _, found := patched.Annotations["merged"]; found || !isTrue(patched, extensions.NamesAccepted) {
		return fmt.Errorf("patched to %+v", patched)
	}
	present := patched.DeepCopy()
	present.Status.Conditions = append(present.Status.Conditions, extensions.CustomResourceDefinitionCondition{Type: "Seen", Status: extensions.ConditionTrue})
	status, err := s.definitions.UpdateStatus(ctx, present, meta.UpdateOptions{})
	if err != nil {
		return err
	}
	if !isTrue(status, "Seen") {
		return fmt.Errorf("the status has %+v", status.Status)
	}
	if err := s.definitions.Delete(ctx, made.Name, meta.DeleteOptions{Preconditions: meta.NewUIDPreconditions(string(made.UID))}); err != nil {
		return err
	}
	return next(events, "the deletion", func(event watch.Event, of *extensions.CustomResourceDefinition) bool {
		return event.Type == watch.Deleted && of.UID == made.UID
	})
}

// everyField makes a round trip with what a definition can have.
func everyField(ctx context.Context, s *suite) error {
	yes, no, one, two, ratio := true, false, int64(1), int64(2), 0.5
	list, mapOf := "map", "granular"
	preserve := true
	message, path, reason, status := "too large", ".size", extensions.FieldValueInvalid, extensions.CustomResourceSubresourceStatus{}
	labels, warning, port, service := ".status.selector", "take v1", int32(8443), "/convert"
	definition := named("fields", "Field")
	definition.Spec.Names.ShortNames, definition.Spec.Names.Categories = []string{"fd"}, []string{"all"}
	definition.Spec.Conversion = &extensions.CustomResourceConversion{
		Strategy: extensions.WebhookConverter,
		Webhook: &extensions.WebhookConversion{
			ClientConfig: &extensions.WebhookClientConfig{
				Service: &extensions.ServiceReference{Namespace: "default", Name: "hook", Path: &service, Port: &port},
			},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	properties := map[string]extensions.JSONSchemaProps{
		"ratio": {Type: "number", Format: "double", Minimum: &ratio, ExclusiveMinimum: true, MultipleOf: &ratio},
		"size": {Type: "integer", Format: "int64", Nullable: true,
			Default: &extensions.JSON{Raw: []byte("7")}, Enum: []extensions.JSON{{Raw: []byte("7")}, {Raw: []byte("8")}}},
		"name": {Type: "string", Pattern: "^[a-z]*$", MinLength: &one, MaxLength: &two, Description: "A name.", Title: "Name", Example: &extensions.JSON{Raw: []byte(`"a"`)}},
		"port": {XIntOrString: true, AnyOf: []extensions.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}},
		"items": {Type: "array", XListType: &list, XListMapKeys: []string{"key"}, MaxItems: &two, Items: &extensions.JSONSchemaPropsOrArray{Schema: &extensions.JSONSchemaProps{
			Type: "object", Required: []string{"key"}, Properties: map[string]extensions.JSONSchemaProps{"key": {Type: "string"}}}}},
		"any":    {Type: "object", XPreserveUnknownFields: &preserve, XMapType: &mapOf},
		"object": {Type: "object", XEmbeddedResource: yes, XPreserveUnknownFields: &preserve},
		"map":    {Type: "object", AdditionalProperties: &extensions.JSONSchemaPropsOrBool{Allows: true, Schema: &extensions.JSONSchemaProps{Type: "string"}}, MaxProperties: &two},
		"not":    {Type: "object", Not: &extensions.JSONSchemaProps{Required: []string{"a"}}, OneOf: []extensions.JSONSchemaProps{{Required: []string{"b"}}}, AllOf: []extensions.JSONSchemaProps{{MinProperties: &one}}},
		"ruled": {Type: "object", Properties: map[string]extensions.JSONSchemaProps{"size": {Type: "integer"}}, XValidations: extensions.ValidationRules{{
			Rule: "self.size < 9", Message: message, FieldPath: path, Reason: &reason, OptionalOldSelf: nil}, {Rule: "oldSelf.hasValue() || self.size > 0", OptionalOldSelf: &yes}}},
	}
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = extensions.JSONSchemaProps{Type: "object", Properties: properties}
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = extensions.JSONSchemaProps{Type: "object", Properties: map[string]extensions.JSONSchemaProps{
		"replicas": {Type: "integer"}, "selector": {Type: "string"}}}
	definition.Spec.Versions[0].Subresources = &extensions.CustomResourceSubresources{Status: &status, Scale: &extensions.CustomResourceSubresourceScale{
		SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.replicas", LabelSelectorPath: &labels}}
	definition.Spec.Versions[0].SelectableFields = []extensions.SelectableField{{JSONPath: ".spec.name"}}
	definition.Spec.Versions = append(definition.Spec.Versions, extensions.CustomResourceDefinitionVersion{
		Name: "v1beta1", Served: no, Deprecated: yes, DeprecationWarning: &warning, Schema: definition.Spec.Versions[0].Schema.DeepCopy(),
	})
	// Equal schemas of all versions are one schema for Kubernetes, which has no selectable fields.
	definition.Spec.Versions[1].Schema.OpenAPIV3Schema.Description = "An older one."
	made, err := s.definitions.Create(ctx, definition, meta.CreateOptions{})
	if err != nil {
		return err
	}
	if expected := definition.Spec.Versions; !equality.Semantic.DeepEqual(made.Spec.Versions, expected) {
		return fmt.Errorf("versions %+v became %+v", expected, made.Spec.Versions)
	}
	if !equality.Semantic.DeepEqual(made.Spec.Conversion, definition.Spec.Conversion) {
		return fmt.Errorf("the conversion became %+v", made.Spec.Conversion)
	}
	read, err := s.definitions.Get(ctx, made.Name, meta.GetOptions{})
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(read.Spec, made.Spec) {
		return fmt.Errorf("read as %+v", read.Spec)
	}
	return s.definitions.Delete(ctx, made.Name, meta.DeleteOptions{})
}

// applies uses the generated configurations of server-side apply.
func applies(ctx context.Context, s *suite) error {
	definition := named("applies", "Applied")
	configuration := func(short string) *apply.CustomResourceDefinitionApplyConfiguration {
		schema := apply.JSONSchemaProps().WithType("object")
		version := apply.CustomResourceDefinitionVersion().WithName("v1").WithServed(true).WithStorage(true).
			WithSchema(apply.CustomResourceValidation().WithOpenAPIV3Schema(schema))
		return apply.CustomResourceDefinition(definition.Name).WithLabels(map[string]string{"of": "go"}).
			WithSpec(apply.CustomResourceDefinitionSpec().WithGroup(definition.Spec.Group).WithScope(extensions.ClusterScoped).
				WithNames(apply.CustomResourceDefinitionNames().WithPlural("applies").WithKind("Applied").WithShortNames(short)).
				WithVersions(version))
	}
	made, err := s.definitions.Apply(ctx, configuration("one"), meta.ApplyOptions{FieldManager: "first"})
	if err != nil {
		return err
	}
	again, err := s.definitions.Apply(ctx, configuration("two"), meta.ApplyOptions{FieldManager: "first"})
	if err != nil {
		return err
	}
	if again.UID != made.UID || len(again.Spec.Names.ShortNames) != 1 || again.Spec.Names.ShortNames[0] != "two" {
		return fmt.Errorf("applied to %+v", again.Spec.Names)
	}
	if _, err = s.definitions.Apply(ctx, configuration("three"), meta.ApplyOptions{FieldManager: "second"}); !errors.IsConflict(err) {
		return fmt.Errorf("applied by another manager: %v", err)
	}
	if _, err = s.definitions.Apply(ctx, configuration("three"), meta.ApplyOptions{FieldManager: "second", Force: true}); err != nil {
		return err
	}
	return s.definitions.Delete(ctx, made.Name, meta.DeleteOptions{})
}

func conflicts(ctx context.Context, s *suite) error {
	made, err := s.definitions.Create(ctx, named("olds", "Old"), meta.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err = s.definitions.Create(ctx, named("olds", "Old"), meta.CreateOptions{}); !errors.IsAlreadyExists(err) {
		return fmt.Errorf("create of the same: %v", err)
	}
	if _, err = s.definitions.Patch(ctx, made.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), meta.PatchOptions{}); err != nil {
		return err
	}
	made.Labels["a"] = "c"
	if _, err = s.definitions.Update(ctx, made, meta.UpdateOptions{}); !errors.IsConflict(err) {
		return fmt.Errorf("update of an old object: %v", err)
	}
	return s.definitions.Delete(ctx, made.Name, meta.DeleteOptions{})
}

// informers follow definitions as operators do.
func informers(ctx context.Context, s *suite) error {
	factory := externalversions.NewSharedInformerFactory(s.all, 0)
	informer := factory.Apiextensions().V1().CustomResourceDefinitions()
	seen := make(chan string, 100)
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen <- "+" + object.(*extensions.CustomResourceDefinition).Name },
		DeleteFunc: func(object any) { seen <- "-" + object.(*extensions.CustomResourceDefinition).Name },
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(running.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return fmt.Errorf("the cache has not synced")
	}
	made, err := s.definitions.Create(ctx, named("informs", "Inform"), meta.CreateOptions{})
	if err != nil {
		return err
	}
	until := func(expected string) error {
		for {
			select {
			case found := <-seen:
				if found == expected {
					return nil
				}
			case <-ctx.Done():
				return fmt.Errorf("never saw %s", expected)
			}
		}
	}
	if err := until("+" + made.Name); err != nil {
		return err
	}
	if err := s.definitions.Delete(ctx, made.Name, meta.DeleteOptions{}); err != nil {
		return err
	}
	return until("-" + made.Name)
}

func refusals(ctx context.Context, s *suite) error {
	bad := named("bads", "Bad")
	bad.Spec.Group = "Not A Group"
	_, err := s.definitions.Create(ctx, bad, meta.CreateOptions{})
	if !errors.IsInvalid(err) {
		return fmt.Errorf("a bad group: %v", err)
	}
	if causes := err.(errors.APIStatus).Status().Details.Causes; len(causes) == 0 {
		return fmt.Errorf("no causes: %v", err)
	}
	if _, err = s.definitions.Get(ctx, "nothing.example.com", meta.GetOptions{}); !errors.IsNotFound(err) {
		return fmt.Errorf("get of nothing: %v", err)
	}
	return nil
}

func collection(ctx context.Context, s *suite) error {
	for _, plural := range []string{"firsts", "seconds"} {
		definition := named(plural, strings.ToUpper(plural[:1])+plural[1:])
		definition.Labels["of"] = "collection"
		if _, err := s.definitions.Create(ctx, definition, meta.CreateOptions{}); err != nil {
			return err
		}
	}
	selected := meta.ListOptions{LabelSelector: "of=collection"}
	list, err := s.definitions.List(ctx, selected)
	if err != nil || len(list.Items) != 2 {
		return fmt.Errorf("%d definitions, %v", len(list.Items), err)
	}
	if err := s.definitions.DeleteCollection(ctx, meta.DeleteOptions{}, selected); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := s.definitions.List(ctx, selected)
		return err == nil && len(list.Items) == 0, err
	})
}

// services does the same with APIServices.
func services(ctx context.Context, s *suite) error {
	codecs := runtime.NewScheme()
	codecs.AddKnownTypes(serviceVersion, &APIService{}, &APIServiceList{})
	meta.AddToGroupVersion(codecs, serviceVersion)
	client, err := serviceClient(s, codecs)
	if err != nil {
		return err
	}
	name := "v1.go.example.com"
	wanted := &APIService{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"of": "go"}}, Spec: APIServiceSpec{
		Group: "go.example.com", Version: "v1", GroupPriorityMinimum: 1500, VersionPriority: 15,
		Namespace: "default", Service: "nothing", Port: 8443, CABundle: []byte("-----BEGIN"), InsecureSkipTLSVerify: false,
	}}
	events, err := client.Get().Resource("apiservices").VersionedParams(&meta.ListOptions{Watch: true, LabelSelector: "of=go"}, meta.ParameterCodec).Watch(ctx)
	if err != nil {
		return err
	}
	defer events.Stop()
	seen := func(kind watch.EventType) error {
		for event := range events.ResultChan() {
			if of, ok := event.Object.(*APIService); ok && of.Name == name && event.Type == kind {
				return nil
			}
		}
		return fmt.Errorf("the watch ended before %s", kind)
	}
	// Its bundle is no certificate.
	if err := client.Post().Resource("apiservices").Body(wanted).Do(ctx).Error(); err != nil && !errors.IsInvalid(err) {
		return err
	}
	_ = client.Delete().Resource("apiservices").Name(name).Do(ctx).Error()
	wanted.Spec.CABundle, wanted.Spec.InsecureSkipTLSVerify = nil, true
	made := &APIService{}
	if err := client.Post().Resource("apiservices").Body(wanted).Do(ctx).Into(made); err != nil {
		return err
	}
	if made.UID == "" || !equality.Semantic.DeepEqual(made.Spec, wanted.Spec) {
		return fmt.Errorf("made as %+v", made)
	}
	if err := seen(watch.Added); err != nil {
		return err
	}
	for {
		present := &APIService{}
		if err := client.Get().Resource("apiservices").Name(name).Do(ctx).Into(present); err != nil {
			return err
		}
		present.Spec.VersionPriority = 16
		err := client.Put().Resource("apiservices").Name(name).Body(present).Do(ctx).Into(present)
		if errors.IsConflict(err) {
			continue
		}
		if err != nil || present.Spec.VersionPriority != 16 {
			return fmt.Errorf("updated to %+v, %v", present, err)
		}
		break
	}
	if err := seen(watch.Modified); err != nil {
		return err
	}
	patched := &APIService{}
	patch := []byte(`{"spec":{"groupPriorityMinimum":1600}}`)
	if err := client.Patch(types.MergePatchType).Resource("apiservices").Name(name).Body(patch).Do(ctx).Into(patched); err != nil {
		return err
	}
	applied := []byte(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"` + name + `","labels":{"applied":"yes"}}}`)
	request := client.Patch(types.ApplyPatchType).Resource("apiservices").Name(name).Param("fieldManager", "go").Body(applied)
	if err := request.Do(ctx).Into(patched); err != nil {
		return err
	}
	if patched.Labels["applied"] != "yes" || patched.Spec.GroupPriorityMinimum != 1600 || patched.Spec.Port != 8443 {
		return fmt.Errorf("applied to %+v", patched)
	}
	list := &APIServiceList{}
	if err := client.Get().Resource("apiservices").VersionedParams(&meta.ListOptions{LabelSelector: "applied"}, meta.ParameterCodec).Do(ctx).Into(list); err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].Name != name {
		return fmt.Errorf("listed as %+v", list)
	}
	if err := client.Delete().Resource("apiservices").Name(name).Do(ctx).Error(); err != nil {
		return err
	}
	return seen(watch.Deleted)
}
