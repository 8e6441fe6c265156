"""`gradflow.watch`, where measuring meets drawing, and its callbacks for trainers."""
