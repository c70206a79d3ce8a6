"""The coding-agent plugin: its files, rendered from one source for each host."""

from rondel.plugin.install import install_plugin as install_plugin
