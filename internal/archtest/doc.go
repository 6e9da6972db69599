// Package archtest holds the rules of the tree as plain Go tests: which package
// may import which, package docs, size ceilings, words that must not appear, and
// that what the docs name exists. It has no code outside its tests.
package archtest
