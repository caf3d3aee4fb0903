// Prints what Kubernetes' own code makes of definitions in Protobuf, for tests/corpus/protobuf/sums.txt and
// every-field.txt. Run from target/tools/crds with the files */*.yaml as arguments, it prints for each the beginnings of two
// SHA-256: of the file, and of its spec in Protobuf. With --whole it prints instead of each file the definition in Protobuf,
// as base64, and in JSON. The Go libraries are those of Debian's golang-k8s-apiextensions-apiserver-dev 0.36.4.
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func sum(data []byte) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%x", sum[:8])
}

func show(path string, whole bool) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var definition v1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &definition); err != nil {
		return err
	}
	if !whole {
		spec, err := definition.Spec.Marshal()
		if err == nil {
			fmt.Println(strings.TrimSuffix(path, ".yaml"), sum(data), sum(spec))
		}
		return err
	}
	message, err := definition.Marshal()
	if err != nil {
		return err
	}
	back, err := json.Marshal(&definition)
	if err == nil {
		fmt.Printf("%s\n%s\n", base64.StdEncoding.EncodeToString(message), back)
	}
	return err
}

func main() {
	paths, whole := os.Args[1:], false
	if len(paths) > 0 && paths[0] == "--whole" {
		paths, whole = paths[1:], true
	}
	for _, path := range paths {
		if err := show(path, whole); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}
