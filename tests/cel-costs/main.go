// Asks Kubernetes' own libraries for the costs of the rules in a table, and prints the table with the answers.
//
// The table (runtime/cel/src/tests/costs.json) has schemas, each with a document, and rules about them. A rule's answer
// is its estimated cost and the cost of its evaluation for the document, or the error of its compilation. The costs are
// those of the cel-go that is linked. The kept answers are those of 0.26.0, which Kubernetes 1.36 requires; the
// estimates of 0.27.0 are the same.
//
// With -definitions, the file (definitions.json beside the table) is a list of schemas instead, and the answers are the
// errors of definitions with them.
//
// The script `run` beside this file builds and runs it.
package main

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type subject struct {
	Schema   stdjson.RawMessage `json:"schema"`
	Document stdjson.RawMessage `json:"document"`
}

type answer struct {
	On       string  `json:"on"`
	Rule     string  `json:"rule"`
	Estimate *uint64 `json:"estimate,omitempty"`
	Cost     *uint64 `json:"cost,omitempty"`
	Error    string  `json:"error,omitempty"`
}

type table struct {
	Subjects map[string]subject `json:"subjects"`
	Rules    []*answer          `json:"rules"`
}

// selfType matches the name of an object's type, which has a number made of the time; `object` stands for all of them.
var selfType = regexp.MustCompile(`selfType[0-9]+(\.[@\w]+)*`)

func main() {
	var err error
	switch {
	case len(os.Args) == 2:
		err = costs(os.Args[1])
	case len(os.Args) == 3 && os.Args[1] == "-definitions":
		err = definitions(os.Args[2])
	default:
		err = fmt.Errorf("usage: cel-costs TABLE | -definitions SCHEMAS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// costs answers a table of rules.
func costs(file string) error {
	var all table
	if err := read(file, &all); err != nil {
		return err
	}
	environments := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	for _, one := range all.Rules {
		about, found := all.Subjects[one.On]
		if !found {
			return fmt.Errorf("no subject %q", one.On)
		}
		structural, err := structural(about.Schema)
		if err != nil {
			return err
		}
		if err := one.compile(structural, about.Document, environments); err != nil {
			return fmt.Errorf("%s: %w", one.Rule, err)
		}
	}
	return all.print()
}

// compile answers one rule.
func (a *answer) compile(about *schema.Structural, document []byte, environments *environment.EnvSet) error {
	a.Estimate, a.Cost, a.Error = nil, nil, ""
	about.XValidations = v1.ValidationRules{{Rule: a.Rule}}
	decl := model.SchemaDeclType(about, false)
	results, err := cel.Compile(about, decl, celconfig.PerCallLimit, environments, cel.NewExpressionsEnvLoader())
	if err != nil {
		return err
	}
	result := results[0]
	if result.Error != nil {
		a.Error = selfType.ReplaceAllString(result.Error.Detail, "object")
		return nil
	}
	a.Estimate = &result.MaxCost
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		return err
	}
	self := cel.UnstructuredToVal(value, about)
	_, details, err := result.Program.ContextEval(context.Background(), map[string]any{"self": self, "oldSelf": self})
	// An evaluation that fails has no cost of interest.
	if err == nil {
		a.Cost = details.ActualCost()
	}
	return nil
}

// print writes a rule a line, so that changes can be read.
func (t *table) print() error {
	var out bytes.Buffer
	out.WriteString("{\n\"subjects\": {")
	names := make([]string, 0, len(t.Subjects))
	for name := range t.Subjects {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		text, err := line(t.Subjects[name])
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s\n%q: %s", comma(i), name, text)
	}
	out.WriteString("\n},\n\"rules\": [")
	for i, rule := range t.Rules {
		text, err := line(rule)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s\n%s", comma(i), text)
	}
	out.WriteString("\n]\n}\n")
	_, err := out.WriteTo(os.Stdout)
	return err
}

func comma(index int) string {
	if index == 0 {
		return ""
	}
	return ","
}

func line(value any) (string, error) {
	var out bytes.Buffer
	encoder := stdjson.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return string(bytes.TrimSpace(out.Bytes())), err
}

// definitions answers a list of schemas with the errors of definitions with them.
func definitions(file string) error {
	var all []*judged
	if err := read(file, &all); err != nil {
		return err
	}
	for _, one := range all {
		internal, err := properties(one.Schema)
		if err != nil {
			return err
		}
		yes, no := true, false
		definition := &apiextensions.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
			Spec: apiextensions.CustomResourceDefinitionSpec{
				Group: "example.com", Scope: apiextensions.ClusterScoped, Version: "v1", PreserveUnknownFields: &no,
				Conversion: &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter},
				Names: apiextensions.CustomResourceDefinitionNames{
					Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
				Versions: []apiextensions.CustomResourceDefinitionVersion{{
					Name: "v1", Served: yes, Storage: yes,
					Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: internal}}},
			},
			Status: apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
		}
		one.Errors = []string{}
		for _, found := range validation.ValidateCustomResourceDefinition(context.Background(), definition) {
			text, isOfSchema := strings.CutPrefix(found.Error(), schemaPath)
			if isOfSchema {
				one.Errors = append(one.Errors, strings.ReplaceAll(text, schemaPath, ""))
			}
		}
	}
	for i, one := range all {
		text, err := line(one)
		if err != nil {
			return err
		}
		fmt.Printf("%s%s\n", []string{"[", ","}[min(i, 1)], text)
	}
	fmt.Println("]")
	return nil
}

type judged struct {
	Schema stdjson.RawMessage `json:"schema"`
	Errors []string           `json:"errors"`
}

// schemaPath is left out of errors.
const schemaPath = "spec.versions[0].schema."

func structural(text []byte) (*schema.Structural, error) {
	internal, err := properties(text)
	if err != nil {
		return nil, err
	}
	return schema.NewStructural(internal)
}

func properties(text []byte) (*apiextensions.JSONSchemaProps, error) {
	var written v1.JSONSchemaProps
	if err := json.Unmarshal(text, &written); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&written, &internal, nil)
	return &internal, err
}

func read(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return stdjson.Unmarshal(text, into)
}
