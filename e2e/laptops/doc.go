// Package laptops tests what a person does with two bare laptops and the laptop package:
// install, start, join, trial, remove. The laptops are machines that systemd boots, without a
// network but the one between them.
package laptops
