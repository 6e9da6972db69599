// Package app is the composition root: it builds the broker's parts from the
// configuration, starts them in order, and stops them in the reverse order. It is
// the only package that may import all others; it holds no logic of a part.
package app
