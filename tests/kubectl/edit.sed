s/Reference: second/Reference: third/
