"""The network benchmark: the programs over kernel TCP between network namespaces, joined by native/link.c."""
