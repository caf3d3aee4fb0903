// Kubernetes' own server of CustomResourceDefinitions, as its libraries make it, over an etcd: it asks for no credentials, and has
// no admission, no other kinds and no controllers but those of definitions. tests/tests/oracle compares its answers with ours.
package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	extensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/server"
	features "k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes/scheme"
)

// Conversion webhooks are found by their URL.
type noServices struct{}

func (noServices) ResolveEndpoint(namespace, name string, _ int32) (*url.URL, error) {
	return nil, fmt.Errorf("there is no service %s in %s", name, namespace)
}

func main() {
	if err := serve(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	stop := server.SetupSignalContext()
	flags := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	all := options.NewCustomResourceDefinitionsServerOptions(os.Stdout, os.Stderr)
	all.AddFlags(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	recommended := all.RecommendedOptions
	recommended.Authentication, recommended.Authorization = nil, nil
	recommended.Admission, recommended.CoreAPI = nil, nil
	recommended.Features.EnablePriorityAndFairness = false
	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
	if err := errors.Join(all.Complete(), recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, loopback)); err != nil {
		return err
	}

	generic := server.NewRecommendedConfig(apiserver.Codecs)
	resources := apiserver.DefaultAPIResourceConfigSource()
	if err := errors.Join(
		all.ServerRunOptions.ApplyTo(&generic.Config),
		recommended.ApplyTo(generic),
		all.APIEnablement.ApplyTo(&generic.Config, resources, apiserver.Scheme),
	); err != nil {
		return err
	}
	schemas := features.GetOpenAPIDefinitionsWithoutDisabledFeatures(extensions.GetOpenAPIDefinitions)
	names := openapi.NewDefinitionNamer(apiserver.Scheme, scheme.Scheme)
	generic.OpenAPIConfig = server.DefaultOpenAPIConfig(schemas, names)
	generic.OpenAPIV3Config = server.DefaultOpenAPIV3Config(schemas, names)

	config := apiserver.Config{GenericConfig: generic}
	config.ExtraConfig.CRDRESTOptionsGetter = options.NewCRDRESTOptionsGetter(
		*recommended.Etcd, generic.ResourceTransformers, generic.StorageObjectCountTracker)
	config.ExtraConfig.ServiceResolver = noServices{}
	config.ExtraConfig.AuthResolverWrapper = webhook.NewDefaultAuthenticationInfoResolverWrapper(
		nil, nil, generic.LoopbackClientConfig, noop.NewTracerProvider())
	definitions, err := config.Complete().New(server.NewEmptyDelegate())
	if err != nil {
		return err
	}
	return definitions.GenericAPIServer.PrepareRun().RunWithContext(stop)
}
