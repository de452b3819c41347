"""The words in which views describe themselves for the OpenAPI document; `config.openapi` makes it.

A view of the REST framework is described by `extend_schema`, any other by `operations.described`.
"""
