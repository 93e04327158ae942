"""Tables 2-6, 10 and 11 of Depecker, Clemencon & Vayatis (2011): ranking trees and forests."""
