"""Every answer that a test gets from Parley fits the published OpenAPI document, and every object of
somebody else's protocol fits that protocol's own package.

`recording` sees the answers, `document` knows what is published, `protocols` what others published;
`plugin` fails the test that got an answer which does not fit.
"""
