// Writes the table of patterns that the tests of apiloom-schema replay: what Go's package regexp says of patterns and texts.
//
// Each line is JSON: a pattern with the error of regexp.Compile, or with texts and where their matches begin and end.
// To be run with the Go of the newest Kubernetes: GO111MODULE=off go run tests/patterns/main.go > the table.
package main

import (
	"bufio"
	"encoding/json"
	"math/rand"
	"os"
	"regexp"
	"regexp/syntax"
	"strings"
)

const rows = 3000

// Characters of texts: ASCII, cases with three forms, letters of several scripts, digits that are not ASCII, ends of lines.
var letters = []rune("aabbckKsSzZ019_-.&~[]^\\ \n\téßΣσςſ\u212a\u0661中\u00a0")

// What patterns are made of, besides classes and groups.
var atoms = []string{
	"a", "b", "k", "S", "ab", "é", "ß", "Σ", "ſ", "中", "0", "-", "&&", "--", "~~", "]", "}", "{", "{,2}", "{2", "{a}", "#", " ", "/",
	"<", ">", "\"", "\u212a", ".", ".", "^", "$", `\b`, `\B`, `\A`, `\z`, `\d`, `\D`, `\s`, `\S`, `\w`, `\W`, `\pL`, `\PL`, `\p{Greek}`,
	`\p{greek}`, `\P{Lu}`, `\p{^Nd}`, `\pN`, `\p{Any}`, `\p{Ll}`, `\p{Letter}`, `\p{uppercase_letter}`, `\p{Lt}`, `\Qa.b\E`, `\Q[\E`, `\Q`,
	`\E`, `\101`, `\0`, `\012`, `\x41`, `\x{e9}`, `\n`, `\t`, `\a`, `\_`, `\<`, `\>`, `\.`, `\&`, `\~`, `\-`, `\#`, `\ `, `\]`,
}

// What no pattern has, or only in other languages.
var wrong = []string{
	`\C`, `\h`, `\1`, `\8`, `\x{`, `\xg1`, `\x4`, `\x{110000}`, `\p{`, `\p{Foo}`, `\p{IsGreek}`, `\p{Grek}`, `\p`, `\pX`, `\`, "[", "[z-a]",
	"[[:foo:]]", "(?x)", "(?!a)", "(?<=a)", "(?P<", "(?P<n", "(?<a b>c)", "(?-)", "(?i", "(?", "(", ")", "**", "a{2}{3}", "a{1001}", "a{2,1}",
	"*", "+", "(*)", "|*", "a{500}", `\R`, `\X`, `\e`, `\cA`, `(?#a)`, `(?>a)`, `[a-\d]`, `[\b]`, `[\`, `{1}`, `a++`, `(?i)*`, `^*`, `(?:a{30}){40}`,
}

// What classes are made of.
var items = []string{
	"a", "b", "k", "S", "Σ", "ſ", "0", "a-c", "A-Z", "0-9", "-", "--", "&", "&&", "~~", "~", "[", "^", "]", `\]`, `\-`, `\^`, `\\`, `\d`, `\D`,
	`\s`, `\S`, `\w`, `\W`, `\pL`, `\PL`, `\p{Greek}`, `\P{Lu}`, `\p{^Nd}`, "[:alpha:]", "[:^digit:]", "[:word:]", "[:space:]", "[.a.]", "[=a=]",
	`\x41-\x{5a}`, `\101`, `\n`, "é", "à-ÿ", "а-я", " ", ".", "*", "(", "|", "$", `\x{0}-\x{10ffff}`, "+--", "!-/", `\Q`, "[a", `\x{d800}-\x{dfff}`,
}

var repeats = []string{
	"*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{2,3}?", "{0}", "{,2}", "{1", "{0,0}", "{0,}", "{03}",
}

var groups = []string{
	"(", "(", "(", "(?:", "(?:", "(?i:", "(?i)(", "(?s:", "(?m:", "(?U:", "(?-i:", "(?im-s:", "(?P<n>", "(?<n>", "(?i)", "(?m)", "(?U)", "(?s)", "(?-s)",
}

var special = []rune(`()[]{}*+?|^$.\-:,=&~<>PQEdpx019aiU`)

var random = rand.New(rand.NewSource(1))

func pick(of []string) string { return of[random.Intn(len(of))] }

func class() string {
	out := "["
	if random.Intn(3) == 0 {
		out += "^"
	}
	if random.Intn(6) == 0 {
		out += "]"
	}
	for range 1 + random.Intn(4) {
		out += pick(items)
	}
	return out + "]"
}

func atom(depth int) string {
	switch n := random.Intn(20); {
	case n < 5:
		return class()
	case n < 9 && depth > 0:
		open := pick(groups)
		if strings.Count(open, "(") == strings.Count(open, ")") {
			return open
		}
		return open + pattern(depth-1) + ")"
	case n == 19 && random.Intn(3) == 0:
		return pick(wrong)
	default:
		return pick(atoms)
	}
}

func pattern(depth int) string {
	var out strings.Builder
	for range random.Intn(4) {
		out.WriteString(atom(depth))
		if random.Intn(3) == 0 {
			out.WriteString(pick(repeats))
		}
		if random.Intn(7) == 0 {
			out.WriteString("|")
		}
	}
	return out.String()
}

// A pattern with a character removed, added or replaced.
func mutated(pattern string) string {
	runes := []rune(pattern)
	at := random.Intn(len(runes) + 1)
	before, after := string(runes[:at]), runes[at:]
	if len(after) > 0 && random.Intn(2) == 0 {
		after = after[1:]
	}
	if random.Intn(3) > 0 {
		before += string(special[random.Intn(len(special))])
	}
	return before + string(after)
}

func noise(length int) string {
	var out strings.Builder
	for range random.Intn(length + 1) {
		out.WriteRune(letters[random.Intn(len(letters))])
	}
	return out.String()
}

// A text that is likely to match.
func sample(re *syntax.Regexp) string {
	some := func(least, most int) string {
		var out strings.Builder
		for range min(least, 40) + random.Intn(min(most-least, 2)+1) {
			out.WriteString(sample(re.Sub[0]))
		}
		return out.String()
	}
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			return ""
		}
		// The first of a range, or a letter of the class.
		for range 6 {
			if one := letters[random.Intn(len(letters))]; in(re.Rune, one) {
				return string(one)
			}
		}
		return string(re.Rune[random.Intn(len(re.Rune)/2)*2])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return string(letters[random.Intn(len(letters))])
	case syntax.OpStar:
		return some(0, 2)
	case syntax.OpPlus:
		return some(1, 2)
	case syntax.OpQuest:
		return some(0, 1)
	case syntax.OpRepeat:
		return some(re.Min, max(re.Max, re.Min))
	case syntax.OpAlternate:
		return sample(re.Sub[random.Intn(len(re.Sub))])
	case syntax.OpConcat, syntax.OpCapture:
		var out strings.Builder
		for _, sub := range re.Sub {
			out.WriteString(sample(sub))
		}
		return out.String()
	}
	return ""
}

func in(ranges []rune, one rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] <= one && one <= ranges[i+1] {
			return true
		}
	}
	return false
}

func texts(pattern string) []string {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(err)
	}
	found := sample(tree)
	return []string{noise(6), found, noise(2) + sample(tree) + noise(2), strings.ToUpper(found), strings.ToLower(sample(tree) + found)}
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	seen := map[string]bool{}
	write := func(pattern string) {
		if seen[pattern] {
			return
		}
		seen[pattern] = true
		re, err := regexp.Compile(pattern)
		if err != nil {
			lines.Encode([]any{pattern, err.Error()})
			return
		}
		var all []any
		for _, text := range texts(pattern) {
			if len(text) > 100 {
				continue
			}
			places := []int{}
			for _, place := range re.FindAllStringIndex(text, -1) {
				places = append(places, place...)
			}
			all = append(all, []any{text, places})
		}
		lines.Encode([]any{pattern, all})
	}
	for _, list := range [][]string{atoms, wrong, groups} {
		for _, one := range list {
			write(one)
			write("(?i)" + one)
			write("x" + one + "y")
		}
	}
	for _, item := range items {
		write("[" + item + "]")
		write("[^" + item + "]")
		write("(?i)[^" + item + "a]")
	}
	for len(seen) < rows {
		one := pattern(2)
		write(one)
		if random.Intn(2) == 0 {
			write(mutated(one))
		}
	}
}
