s/Reference: second/Reference: third/
s/app: web/app: edited/
