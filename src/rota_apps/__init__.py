"""The applications that come with Rota.

They live on `import rota` alone, as an application of anyone else's does; the import rules hold them to it.
"""
