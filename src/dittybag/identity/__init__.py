"""An OAuth 2.1 resource server that verifies the access tokens of one issuer.

The package imports nothing else of Dittybag but `dittybag.files`, and imports PyJWT only when an
`OAuthVerifier` is created.
"""
