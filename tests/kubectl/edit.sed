s/reference: second/reference: third/
